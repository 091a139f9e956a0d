/**
 * The JSON Schema of a raw shape, as the model sees it. Zod 4 makes its own; fields of Zod 3 are read by
 * `schema-v3.ts`. A shape may have fields of both.
 */
import type { $ZodType } from 'zod/v4/core';

import { isOptionalV3, jsonSchemaV3 } from './schema-v3.js';
import { type AnyZodField, type AnyZodRawShape, isZodV4, type ZodV4Like } from './shapes.js';

/** A JSON Schema. */
export type JsonSchema = Record<string, unknown>;

/** The JSON Schema of the arguments of a tool. */
export async function shapeSchema(shape: AnyZodRawShape): Promise<JsonSchema> {
  const properties: Record<string, JsonSchema> = {};
  const required: string[] = [];
  for (const [name, field] of Object.entries(shape)) {
    properties[name] = isZodV4(field) ? await jsonSchemaV4(field) : jsonSchemaV3(field);
    if (!isOptional(field)) required.push(name);
  }
  return {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
}

async function jsonSchemaV4(field: ZodV4Like): Promise<JsonSchema> {
  // Loaded when a tool needs it: it would be most of the time that importing this package takes.
  const { toJSONSchema } = await import('zod/v4/core');
  const made = toJSONSchema(field as unknown as $ZodType, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
  const { $schema: _dialect, '~standard': _standard, ...schema } = made;
  // Descriptions are kept in a registry of the copy of Zod that made the field, which may be another copy.
  const description = (field as { description?: unknown }).description;
  if (schema['description'] === undefined && typeof description === 'string') schema['description'] = description;
  return schema;
}

function isOptional(field: AnyZodField): boolean {
  if (!isZodV4(field)) return isOptionalV3(field);
  // "optional" for what may be missing, and in newer versions "defaulted" for what is then filled in.
  return (field._zod as { optin?: string }).optin !== undefined;
}
