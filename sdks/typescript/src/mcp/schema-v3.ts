/**
 * JSON Schema for fields of Zod 3, which has no converter of its own. The schema describes what is accepted as
 * input: effects and pipes are described by what goes into them. What JSON Schema cannot say is left open, and
 * Zod still checks it.
 */
import type { JsonSchema } from './schema.js';

interface Definition {
  typeName: string;
  description?: string;
  checks?: Array<{ kind: string; value?: unknown; regex?: RegExp; inclusive?: boolean; [key: string]: unknown }>;
  [key: string]: unknown;
}

/** How deep types that refer to themselves are followed. */
const DEEPEST = 8;

/** The JSON Schema of a field of Zod 3. */
export function jsonSchemaV3(field: unknown, depth = 0): JsonSchema {
  const definition = definitionOf(field);
  const schema = depth > DEEPEST ? {} : convert(definition, depth + 1);
  return definition.description === undefined ? schema : { ...schema, description: definition.description };
}

/** Whether a field of Zod 3 may be left out. */
export function isOptionalV3(field: unknown): boolean {
  const test = (field as { isOptional?: () => boolean }).isOptional;
  return typeof test === 'function' && test.call(field);
}

function definitionOf(field: unknown): Definition {
  return (field as { _def: Definition })._def;
}

function convert(definition: Definition, depth: number): JsonSchema {
  return scalar(definition) ?? collection(definition, depth) ?? wrapper(definition, depth) ?? {};
}

function scalar(definition: Definition): JsonSchema | undefined {
  switch (definition.typeName) {
    case 'ZodString':
      return stringSchema(definition);
    case 'ZodNumber':
      return numberSchema(definition);
    case 'ZodBigInt':
      return { type: 'integer' };
    case 'ZodBoolean':
      return { type: 'boolean' };
    case 'ZodDate':
      return { type: 'string', format: 'date-time' };
    case 'ZodNull':
      return { type: 'null' };
    case 'ZodLiteral':
      return { const: definition['value'] };
    case 'ZodEnum':
      return { type: 'string', enum: definition['values'] };
    case 'ZodNativeEnum':
      return { enum: nativeEnumValues(definition['values'] as Record<string, string | number>) };
    default:
      return undefined;
  }
}

function collection(definition: Definition, depth: number): JsonSchema | undefined {
  switch (definition.typeName) {
    case 'ZodArray':
      return {
        type: 'array',
        items: jsonSchemaV3(definition['type'], depth),
        ...bound('minItems', definition['exactLength'] ?? definition['minLength']),
        ...bound('maxItems', definition['exactLength'] ?? definition['maxLength']),
      };
    case 'ZodSet':
      return { type: 'array', uniqueItems: true, items: jsonSchemaV3(definition['valueType'], depth) };
    case 'ZodTuple': {
      const items = definition['items'] as unknown[];
      const rest = definition['rest'];
      return {
        type: 'array',
        prefixItems: items.map((item) => jsonSchemaV3(item, depth)),
        minItems: items.length,
        ...(rest ? { items: jsonSchemaV3(rest, depth) } : { maxItems: items.length }),
      };
    }
    case 'ZodObject':
      return objectSchema(definition, depth);
    case 'ZodRecord':
      return { type: 'object', additionalProperties: jsonSchemaV3(definition['valueType'], depth) };
    case 'ZodUnion':
      return { anyOf: (definition['options'] as unknown[]).map((option) => jsonSchemaV3(option, depth)) };
    case 'ZodDiscriminatedUnion': {
      const options = definition['options'] as unknown[] | Map<unknown, unknown>;
      return { anyOf: [...options.values()].map((option) => jsonSchemaV3(option, depth)) };
    }
    case 'ZodIntersection':
      return { allOf: [jsonSchemaV3(definition['left'], depth), jsonSchemaV3(definition['right'], depth)] };
    default:
      return undefined;
  }
}

function wrapper(definition: Definition, depth: number): JsonSchema | undefined {
  switch (definition.typeName) {
    case 'ZodOptional':
    case 'ZodReadonly':
    case 'ZodCatch':
      return jsonSchemaV3(definition['innerType'], depth);
    case 'ZodDefault': {
      const value = (definition['defaultValue'] as () => unknown)();
      return { ...jsonSchemaV3(definition['innerType'], depth), default: value };
    }
    case 'ZodNullable':
      return { anyOf: [jsonSchemaV3(definition['innerType'], depth), { type: 'null' }] };
    case 'ZodEffects':
      return jsonSchemaV3(definition['schema'], depth);
    case 'ZodBranded':
    case 'ZodPromise':
      return jsonSchemaV3(definition['type'], depth);
    case 'ZodPipeline':
      return jsonSchemaV3(definition['in'], depth);
    case 'ZodLazy':
      return jsonSchemaV3((definition['getter'] as () => unknown)(), depth);
    default:
      return undefined;
  }
}

function bound(name: string, limit: unknown): JsonSchema {
  const value = (limit as { value?: number } | null)?.value;
  return value === undefined ? {} : { [name]: value };
}

function objectSchema(definition: Definition, depth: number): JsonSchema {
  const shape = (definition['shape'] as () => Record<string, unknown>)();
  const required = Object.keys(shape).filter((name) => !isOptionalV3(shape[name]));
  return {
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(shape).map(([name, field]) => [name, jsonSchemaV3(field, depth)]),
    ),
    ...(required.length > 0 ? { required } : {}),
    ...(definition['unknownKeys'] === 'passthrough' ? {} : { additionalProperties: false }),
  };
}

const STRING_FORMATS: Record<string, string> = {
  email: 'email',
  url: 'uri',
  uuid: 'uuid',
  datetime: 'date-time',
  date: 'date',
  time: 'time',
  duration: 'duration',
  ip: 'ip',
};

function stringSchema(definition: Definition): JsonSchema {
  const schema: JsonSchema = { type: 'string' };
  for (const check of definition.checks ?? []) {
    if (check.kind === 'min' || check.kind === 'length') schema['minLength'] = check.value;
    if (check.kind === 'max' || check.kind === 'length') schema['maxLength'] = check.value;
    if (check.kind === 'regex' && check.regex) schema['pattern'] = check.regex.source;
    if (check.kind === 'startsWith') schema['pattern'] = `^${escapePattern(String(check.value))}`;
    if (check.kind === 'endsWith') schema['pattern'] = `${escapePattern(String(check.value))}$`;
    const format = STRING_FORMATS[check.kind];
    if (format !== undefined) schema['format'] = format;
  }
  return schema;
}

function escapePattern(literal: string): string {
  return literal.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

function numberSchema(definition: Definition): JsonSchema {
  const schema: JsonSchema = { type: 'number' };
  for (const check of definition.checks ?? []) {
    if (check.kind === 'int') schema['type'] = 'integer';
    if (check.kind === 'min') schema[check.inclusive === false ? 'exclusiveMinimum' : 'minimum'] = check.value;
    if (check.kind === 'max') schema[check.inclusive === false ? 'exclusiveMaximum' : 'maximum'] = check.value;
    if (check.kind === 'multipleOf') schema['multipleOf'] = check.value;
  }
  return schema;
}

/** Values of a TypeScript enum; numeric ones also map back to their names, which are no values. */
function nativeEnumValues(members: Record<string, string | number>): Array<string | number> {
  return Object.keys(members)
    .filter((name) => typeof members[members[name] as string] !== 'number')
    .map((name) => members[name] as string | number);
}
