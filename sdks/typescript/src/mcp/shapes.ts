/**
 * Zod raw shapes of any version: their types, and how arguments are parsed with them. Fields are used through
 * what Zod 3 and Zod 4 have in common or can be told apart by, so that the copy of Zod that a program uses need
 * not be the one this package finds.
 */
import type { $ZodType } from 'zod/v4/core';

/** A schema of Zod 4, by what marks it. */
export interface ZodV4Like {
  _zod: { output: unknown; input: unknown };
}

/** A schema of Zod 3, by what marks it. */
export interface ZodV3Like {
  _output: unknown;
  _def: unknown;
}

/** A field of a raw shape. */
export type AnyZodField = ZodV4Like | ZodV3Like;

/** A Zod raw shape: an object of fields, not `z.object(...)`. */
export type AnyZodRawShape = Record<string, AnyZodField>;

/** What parsing a field gives. */
type OutputOf<Field> = Field extends { _zod: { output: infer Output } }
  ? Output
  : Field extends { _output: infer Output }
    ? Output
    : never;

type OptionalKeys<Shape> = {
  [Key in keyof Shape]: undefined extends OutputOf<Shape[Key]> ? Key : never;
}[keyof Shape];

type Flatten<Type> = { [Key in keyof Type]: Type[Key] };

/** The arguments that a handler gets for a raw shape. A shape that is not known (`any`) gives any arguments. */
export type InferShape<Shape> = 0 extends 1 & Shape
  ? any
  : Flatten<
      {
        [Key in Exclude<keyof Shape, OptionalKeys<Shape>>]: OutputOf<Shape[Key]>;
      } & {
        [Key in OptionalKeys<Shape>]?: OutputOf<Shape[Key]>;
      }
    >;

/** Whether a value is a schema of Zod 4. */
export function isZodV4(value: unknown): value is ZodV4Like {
  return typeof value === 'object' && value !== null && '_zod' in value;
}

/** Whether a value is a schema of Zod 3. */
export function isZodV3(value: unknown): value is ZodV3Like {
  return typeof value === 'object' && value !== null && '_def' in value && !('_zod' in value);
}

/** Why a value is no raw shape, or undefined when it is one. */
export function shapeProblem(shape: unknown): string | undefined {
  if (isZodV4(shape) || isZodV3(shape)) {
    return 'inputSchema must be a Zod raw shape such as { id: z.string() }, not z.object(...)';
  }
  if (typeof shape !== 'object' || shape === null || Array.isArray(shape)) {
    return 'inputSchema must be a Zod raw shape: an object of fields such as { id: z.string() }';
  }
  for (const [name, field] of Object.entries(shape)) {
    if (!isZodV4(field) && !isZodV3(field)) return `inputSchema.${name} is no Zod schema`;
  }
  return undefined;
}

interface FieldIssue {
  path: PropertyKey[];
  message: string;
}

type FieldResult = { success: true; data: unknown } | { success: false; error: { issues: FieldIssue[] } };

async function parseField(field: AnyZodField, value: unknown): Promise<FieldResult> {
  const own = (field as { safeParseAsync?: (value: unknown) => Promise<FieldResult> }).safeParseAsync;
  if (typeof own === 'function') return own.call(field, value);
  // Bare schemas of the core of Zod 4 have no methods.
  const { safeParseAsync } = await import('zod/v4/core');
  return safeParseAsync(field as unknown as $ZodType, value) as Promise<FieldResult>;
}

/** Parsed arguments, or what is wrong with them. */
export type ParsedArguments = { arguments: Record<string, unknown> } | { problem: string };

/** Parses the arguments of a call. Names that the shape does not have are dropped. */
export async function parseArguments(shape: AnyZodRawShape, given: Record<string, unknown>): Promise<ParsedArguments> {
  const parsed: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, field] of Object.entries(shape)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    const result = await parseField(field, value);
    if (result.success) {
      if (result.data !== undefined) parsed[name] = result.data;
      continue;
    }
    for (const issue of result.error.issues) {
      problems.push(`${[name, ...issue.path].map(String).join('.')}: ${issue.message}`);
    }
  }
  return problems.length > 0 ? { problem: problems.join('; ') } : { arguments: parsed };
}
