/**
 * Finds the name that was probably meant: the smallest number of edits, within a third of the length.
 */

/** Edits (insert, delete, replace) that turn one text into another. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const replace = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const insert = (current[column - 1] ?? 0) + 1;
      const remove = (previous[column] ?? 0) + 1;
      current.push(Math.min(replace, insert, remove));
    }
    previous = current;
  }
  return previous[to.length] ?? 0;
}

/** A name without what people vary: letter case, dashes and underscores. */
function plain(name: string): string {
  return name.replace(/[_-]/g, '').toLowerCase();
}

/** The name nearest to a mistaken one, or undefined when none is near. */
export function nearestName(mistaken: string, names: readonly string[]): string | undefined {
  const wanted = plain(mistaken);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const name of names) {
    const distance = editDistance(wanted, plain(name));
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}
