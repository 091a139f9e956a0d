-- What a session works or worked towards, as JSON: it changes in the commits of the session.

ALTER TABLE heads ADD COLUMN outcomes TEXT NOT NULL DEFAULT '[]';
