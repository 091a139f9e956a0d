/**
 * The types against the committed JSON Schema of the wire, with the compiler's own eyes: every field that the runtime
 * writes is in the type of its message, and every request that a host can make is one that the package makes.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import ts from 'typescript';

interface Schema {
  $ref?: string;
  const?: string;
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  $defs?: Record<string, Schema>;
}

const repository = process.env['QODER_SDK_REPOSITORY'];
assert.ok(repository, 'QODER_SDK_REPOSITORY names the repository');
const read = (name: string): Schema => JSON.parse(readFileSync(join(repository, 'schemas', name), 'utf8')) as Schema;
const runtime = read('runtime-lines.schema.json');
const host = read('host-control-lines.schema.json');

const manifest = createRequire(import.meta.url).resolve('@qoder-ai/qoder-agent-sdk/package.json');
const declarations = join(dirname(manifest), 'dist/index.d.ts');

/** Property names of every member of the exported union of messages, by `type` and `subtype`. */
function declared(): Map<string, Set<string>> {
  const options: ts.CompilerOptions = { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext };
  const program = ts.createProgram([declarations], { ...options, skipLibCheck: true, strict: true });
  const checker = program.getTypeChecker();
  const file = program.getSourceFile(declarations);
  assert.ok(file);
  const symbol = checker.getExportsOfModule(checker.getSymbolAtLocation(file)!).find((one) => one.name === 'SDKMessage');
  assert.ok(symbol, 'the package exports SDKMessage');
  const union = checker.getDeclaredTypeOfSymbol(
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
  );
  const found = new Map<string, Set<string>>();
  for (const member of union.isUnion() ? union.types : [union]) {
    const literal = (name: string): string[] => {
      const property = member.getProperty(name);
      if (!property) return [''];
      const type = checker.getTypeOfSymbol(property);
      const types = type.isUnion() ? type.types : [type];
      return types.map((one) => (one.isStringLiteral() ? one.value : ''));
    };
    const names = member.getProperties().map((property) => property.name);
    for (const type of literal('type')) {
      for (const subtype of literal('subtype')) {
        const key = `${type}/${type === 'system' ? subtype : ''}`;
        found.set(key, new Set([...(found.get(key) ?? []), ...names]));
      }
    }
  }
  return found;
}

/** The fields of a variant, those behind its reference included. */
function fields(variant: Schema): string[] {
  const behind = variant.$ref ? runtime.$defs?.[variant.$ref.split('/').at(-1) as string]?.properties : {};
  return [...Object.keys(variant.properties ?? {}), ...Object.keys(behind ?? {})];
}

/** For clients of a sibling program only. */
const FOR_OTHERS = new Set(['claude_code_version']);

test('every field that the runtime writes is in the type of its message', () => {
  const types = declared();
  const check = (key: string, names: string[]) => {
    const known = types.get(key);
    assert.ok(known, `no type for ${key}; there are ${[...types.keys()].join(', ')}`);
    assert.deepEqual(names.filter((name) => !known.has(name) && !FOR_OTHERS.has(name)), [], key);
  };
  for (const variant of runtime.$defs?.['StreamMessage']?.oneOf ?? []) {
    const type = variant.properties?.['type']?.const;
    if (type !== 'system') check(`${type}/`, fields(variant));
  }
  for (const variant of runtime.$defs?.['SystemMessage']?.oneOf ?? []) {
    check(`system/${variant.properties?.['subtype']?.const}`, fields(variant));
  }
  check('stream_event/', Object.keys(runtime.$defs?.['stream_event']?.properties ?? {}));
});

test('every request of either side is one that the package knows', () => {
  const folder = dirname(declarations);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
  const source = files.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
  const subtypes = (schema: Schema, name: string) =>
    (schema.$defs?.[name]?.oneOf ?? []).map((variant) => variant.properties?.['subtype']?.const as string);
  const all = [...subtypes(host, 'HostRequest'), ...subtypes(runtime, 'RuntimeRequest')];
  assert.ok(all.length > 20);
  assert.deepEqual(all.filter((name) => !new RegExp(`['"\`]${name}['"\`]`).test(source)), []);
});
