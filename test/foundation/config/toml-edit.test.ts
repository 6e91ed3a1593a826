import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parse as parseToml } from 'smol-toml';
import { lineOf, setKeys } from '../../../src/foundation/config/toml-edit.ts';

type Value = Parameters<typeof setKeys>[1] extends ReadonlyMap<string, infer V> ? V : never;

/** smol-toml's tables have no prototype, which deepEqual would mind. */
const parse = (text: string): unknown => structuredClone(parseToml(text));

const set = (text: string, entries: Record<string, Value>) => setKeys(text, new Map(Object.entries(entries)));

test('replaces a value and keeps comments, order and spacing', () => {
  const text = '# mine\n\nlog_level  =   "info"   # loud enough\n\n  mdns = false\n# end\n';
  assert.equal(
    set(text, { log_level: 'debug' }),
    '# mine\n\nlog_level  =   "debug"   # loud enough\n\n  mdns = false\n# end\n',
  );
});

test('adds a key behind the last one, or to an empty file', () => {
  assert.equal(set('', { a: 1 }), 'a = 1\n');
  assert.equal(set('# only words', { a: true }), '# only words\na = true\n');
  assert.equal(set('a = 1\n\n# tail\n', { b: 'x' }), 'a = 1\nb = "x"\n\n# tail\n');
  assert.equal(set('a = 1', { b: ['x', 'y'] }), 'a = 1\nb = ["x", "y"]\n');
  assert.equal(set('a = 1\r\n', { b: 2 }), 'a = 1\r\nb = 2\r\n');
});

test('adds a key before the first table', () => {
  const text = 'a = 1\n\n[[t]]\nx = 1\n';
  assert.equal(set(text, { b: 2 }), 'a = 1\nb = 2\n\n[[t]]\nx = 1\n');
  assert.deepEqual(parse(set('# head\n[[t]]\nx = 1\n', { b: 2 })), { b: 2, t: [{ x: 1 }] });
});

test('turns tables of a key into one line, and leaves other tables alone', () => {
  const text = '# turn\n[[t]] # first\nx = 1\n# lost\ny = "]"\n[[t]]\nx = 2\n# other\n[o]\nx = 3\n[[t]]\nx = 4\n';
  const result = set(text, { t: [{ x: 9 }] });
  assert.deepEqual(parse(result), { t: [{ x: 9 }], o: { x: 3 } });
  assert.match(result, /# turn\n/);
  assert.match(result, /# other\n\[o\]\nx = 3\n/);
});

test('finds values of every form', () => {
  const values = [
    '"a # b = [" # c',
    "'a # \\' # c",
    '"\\" # \\\\" # c',
    '"""\nb = 1\n# no comment \\""" "" """"" # c',
    "'''\nb = 1\n''''' # c",
    '[1, # one ] \n "]", \'[\', { x = "}" }, \n]# c',
    '{ x = [1], "y # z" = \'\' } # c',
    '1979-05-27T07:32:00Z # c',
    '""# c',
  ];
  for (const value of values) {
    const text = `a = ${value}\nb = 2\n`;
    assert.doesNotThrow(() => parse(text), value);
    assert.equal(set(text, { a: 5 }), `a = 5${value.slice(value.search(/ ?# c/))}\nb = 2\n`);
    assert.equal(lineOf(text, 'b'), text.split('\n').length - 1);
  }
});

test('knows quoted and dotted keys', () => {
  assert.equal(set('"a" = 1\n', { a: 2 }), '"a" = 2\n');
  assert.equal(set("'a=b' = 1\na = 1\n", { a: 2 }), "'a=b' = 1\na = 2\n");
  assert.deepEqual(parse(set('a.x = 1\na.y = 2\nb = 1\n', { a: 3 })), { a: 3, b: 1 });
});

test('tells the line of a key', () => {
  const text = '# a = 1\n\n"b" = 1\nc.d = 1\n[[e.f]]\nb = 2\n';
  assert.deepEqual(
    ['a', 'b', 'c', 'e', 'd'].map((key) => lineOf(text, key)),
    [undefined, 3, 4, 5, undefined],
  );
});

test('whatever the file, the keys change and nothing else does', () => {
  const word = fc.string({
    unit: fc.constantFrom('a', '"', "'", '#', '\\', '=', '[', ']', '{', '\n', '\t', ' ', 'é'),
    maxLength: 8,
  });
  const scalar = fc.oneof(word, fc.integer(), fc.boolean(), fc.array(word, { maxLength: 3 }));
  const table = fc.record({ url: word, 'a b': fc.integer() });
  const key = fc.constantFrom('a', 'b', 'c', 'd');
  const write = (value: unknown): string =>
    typeof value === 'string' && !value.includes("'") && !value.includes('\n') && value.length % 2 === 0
      ? `'${value}'`
      : JSON.stringify(value);
  fc.assert(
    fc.property(
      fc.dictionary(key, scalar),
      fc.array(fc.constantFrom('', '# a = "x', '   # ]', '\t')),
      fc.array(table, { maxLength: 3 }),
      fc.boolean(),
      fc.dictionary(fc.oneof(key, fc.constant('t')), scalar),
      (start, noise, tables, crlf, changes) => {
        const pairs = Object.entries(start).map(
          ([name, value], i) => `${noise[i] ?? ''}\n ${name} = ${write(value)} ${(noise[i + 1] ?? '').trim()}`,
        );
        const sections = tables.map(
          (t) =>
            `# section\n[[ t ]]\n${Object.entries(t)
              .map(([n, v]) => `"${n}"=${write(v)}`)
              .join('\n')}`,
        );
        const joined = [...pairs, ...noise, ...sections].join('\n');
        const text = crlf ? joined.replaceAll('\n', '\r\n') : joined;
        const before = structuredClone(parseToml(text));
        const after = setKeys(text, new Map(Object.entries(changes)));
        assert.deepEqual(parse(after), { ...before, ...changes });
      },
    ),
    { seed: 4, numRuns: 500 },
  );
});
