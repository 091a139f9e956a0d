/**
 * Raw shapes of Zod 3 and Zod 4: the JSON Schema that the model sees, what is parsed, and the inferred types.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createSdkMcpServer, type InferShape, OptionsError, tool } from '@qoder-ai/qoder-agent-sdk';
import { z as z4 } from 'zod/v4';
import * as core from 'zod/v4/core';
import * as mini from 'zod/v4-mini';
import { z as z3 } from 'zod3';

import { connect } from './support/rpc.js';

const shape4 = {
  query: z4.string().min(2).describe('Search keywords'),
  maxResults: z4.number().int().min(1).max(10).optional().describe('At most'),
  source: z4.enum(['docs', 'tickets']).default('docs'),
  tags: z4.array(z4.string()).max(3).optional(),
  range: z4.object({ from: z4.number(), to: z4.number().optional() }).optional(),
  strict: z4.boolean().nullable().optional(),
};

const shape3 = {
  query: z3.string().min(2).describe('Search keywords'),
  maxResults: z3.number().int().min(1).max(10).optional().describe('At most'),
  source: z3.enum(['docs', 'tickets']).default('docs'),
  tags: z3.array(z3.string()).max(3).optional(),
  range: z3.object({ from: z3.number(), to: z3.number().optional() }).optional(),
  strict: z3.boolean().nullable().optional(),
};

/** The schema that the server lists for a shape. */
async function schemaOf(shape: Parameters<typeof tool>[2]): Promise<any> {
  const server = createSdkMcpServer({
    name: 's',
    tools: [tool('t', 'A tool.', shape, async () => ({ content: [] }))],
  });
  const answer = await (await connect(server.instance)).ask('tools/list');
  return (answer.result as { tools: Array<{ inputSchema: unknown }> }).tools[0]?.inputSchema;
}

for (const [version, shape] of [
  ['4', shape4],
  ['3', shape3],
] as const) {
  test(`Zod ${version}: the schema has types, ranges, enums, defaults, descriptions and what is required`, async () => {
    const schema = await schemaOf(shape);
    assert.equal(schema.type, 'object');
    assert.deepEqual(schema.required, ['query']);
    assert.equal(schema.properties.query.type, 'string');
    assert.equal(schema.properties.query.minLength, 2);
    assert.equal(schema.properties.query.description, 'Search keywords');
    assert.equal(schema.properties.maxResults.type, 'integer');
    assert.equal(schema.properties.maxResults.minimum, 1);
    assert.equal(schema.properties.maxResults.maximum, 10);
    assert.equal(schema.properties.maxResults.description, 'At most');
    assert.deepEqual(schema.properties.source.enum, ['docs', 'tickets']);
    assert.equal(schema.properties.source.default, 'docs');
    assert.equal(schema.properties.tags.items.type, 'string');
    assert.equal(schema.properties.tags.maxItems, 3);
    assert.deepEqual(schema.properties.range.required, ['from']);
    assert.equal('$schema' in schema.properties.query, false);
  });

  test(`Zod ${version}: arguments are parsed, defaults filled in, the rest refused`, async () => {
    const calls: unknown[] = [];
    const server = createSdkMcpServer({
      name: 's',
      tools: [
        tool('t', 'A tool.', shape, async (args) => {
          calls.push(args);
          return { content: [] };
        }),
      ],
    });
    const client = await connect(server.instance);
    await client.call('t', { query: 'ab', unknown: 1 });
    assert.deepEqual(calls, [{ query: 'ab', source: 'docs' }]);
    const refused = await client.call('t', { query: 'a', maxResults: 1.5, range: {} });
    assert.equal(refused.isError, true);
    const text = refused.content[0].text as string;
    assert.match(text, /^Invalid arguments for t: /);
    for (const name of ['query: ', 'maxResults: ', 'range.from: ']) assert.ok(text.includes(name), text);
    assert.equal(calls.length, 1);
  });
}

test('Zod 3: kinds of fields that are seldom', async () => {
  enum Level {
    Low,
    High = 'high',
  }
  type Tree = { children: Tree[] };
  const tree: z3.ZodType<Tree> = z3.lazy(() => z3.object({ children: z3.array(tree) }));
  const schema = await schemaOf({
    email: z3.string().email().endsWith('.org'),
    literal: z3.literal('x'),
    native: z3.nativeEnum(Level),
    tuple: z3.tuple([z3.string(), z3.number()]),
    record: z3.record(z3.number().positive()),
    union: z3.union([z3.string(), z3.null()]),
    discriminated: z3.discriminatedUnion('k', [z3.object({ k: z3.literal('a') }), z3.object({ k: z3.literal('b') })]),
    both: z3.intersection(z3.object({ a: z3.string() }), z3.object({ b: z3.string() }).passthrough()),
    effect: z3.string().transform((text) => text.length),
    piped: z3.string().pipe(z3.coerce.number()),
    branded: z3.string().brand('Id'),
    date: z3.date(),
    set: z3.set(z3.string()),
    any: z3.any(),
    tree,
  });
  const { properties } = schema;
  assert.equal(properties.email.format, 'email');
  assert.equal(properties.email.pattern, '\\.org$');
  assert.deepEqual(properties.literal, { const: 'x' });
  assert.deepEqual(properties.native, { enum: [0, 'high'] });
  assert.equal(properties.tuple.prefixItems.length, 2);
  assert.deepEqual(properties.record.additionalProperties, { type: 'number', exclusiveMinimum: 0 });
  assert.deepEqual(properties.union, { anyOf: [{ type: 'string' }, { type: 'null' }] });
  assert.equal(properties.discriminated.anyOf.length, 2);
  assert.equal(properties.both.allOf[1].additionalProperties, undefined);
  assert.deepEqual(properties.effect, { type: 'string' });
  assert.deepEqual(properties.piped, { type: 'string' });
  assert.deepEqual(properties.branded, { type: 'string' });
  assert.equal(properties.date.format, 'date-time');
  assert.equal(properties.set.uniqueItems, true);
  assert.deepEqual(properties.any, {});
  assert.equal(properties.tree.properties.children.items.type, 'object');
});

test('Zod mini and a mixture of versions', async () => {
  const schema = await schemaOf({ a: mini.optional(mini.string()), b: z3.number(), c: z4.boolean() });
  assert.deepEqual(schema.required, ['b', 'c']);
  assert.equal(schema.properties.a.type, 'string');
});

test('handlers get inferred types of both versions', () => {
  type From4 = InferShape<typeof shape4>;
  type From3 = InferShape<typeof shape3>;
  const from4: From4 = { query: 'x', source: 'docs' };
  const from3: From3 = { query: 'x', source: 'tickets', range: { from: 1 }, strict: null };
  const limit: number | undefined = from4.maxResults;
  // @ts-expect-error: the range is an object
  const wrong: From3 = { query: 'x', source: 'docs', range: 5 };
  // @ts-expect-error: the query is required
  const missing: From4 = { source: 'docs' };
  assert.deepEqual([limit, from3.strict, wrong.range, missing.source], [undefined, null, 5, 'docs']);
});

test('z.object() and things that are no schema are refused', () => {
  const handler = async (): Promise<{ content: [] }> => ({ content: [] });
  const object4 = z4.object({ a: z4.string() }) as unknown as typeof shape4;
  const object3 = z3.object({ a: z3.string() }) as unknown as typeof shape3;
  assert.throws(() => tool('t', 'd', object4, handler), /raw shape such as .*not z\.object/);
  assert.throws(() => tool('t', 'd', object3, handler), /not z\.object/);
  assert.throws(() => tool('t', 'd', { a: 'string' } as unknown as typeof shape4, handler), /inputSchema\.a is no Zod schema/);
  assert.throws(() => tool('t', 'd', [] as unknown as typeof shape4, handler), OptionsError);
});

test('a tool without parameters', async () => {
  assert.deepEqual(await schemaOf({}), { type: 'object', properties: {}, additionalProperties: false });
});

test('bare schemas of the core of Zod 4', async () => {
  const bare = new core.$ZodString({ type: 'string' });
  const server = createSdkMcpServer({
    name: 's',
    tools: [tool('t', 'A tool.', { a: bare }, async ({ a }) => ({ content: [{ type: 'text', text: a }] }))],
  });
  const client = await connect(server.instance);
  assert.equal((await client.call('t', { a: 'x' })).content[0].text, 'x');
  assert.equal((await client.call('t', { a: 1 })).isError, true);
});
