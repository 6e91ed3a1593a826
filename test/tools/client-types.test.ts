import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { operations } from '../../src/operations/index.ts';
import { apiText, typeText } from '../../tools/bundle/client-types.ts';

test('converts schemas to TypeScript', () => {
  for (const [schema, text] of [
    [Type.String({ pattern: 'x' }), 'string'],
    [Type.Integer(), 'number'],
    [Type.Literal('a'), '"a"'],
    [Type.Enum(['a', 'b']), '"a" | "b"'],
    [Type.Union([Type.String(), Type.Null()]), '(string) | (null)'],
    [Type.Array(Type.Boolean()), 'readonly (boolean)[]'],
    [Type.Record(Type.String(), Type.Number()), '{ readonly [name: string]: number }'],
    [
      Type.Object({ a: Type.String(), b: Type.Optional(Type.Null()) }),
      '{ readonly a: string; readonly b?: null | undefined }',
    ],
    [Type.Object({ 'a-b': Type.Unknown() }), '{ readonly "a-b": unknown }'],
  ] as const)
    assert.equal(typeText(schema), text);
  assert.throws(() => typeText({ type: 'function' }), /no type is known/);
});

test('every operation is a method with a type', () => {
  const text = apiText(operations);
  for (const name of Object.keys(operations)) assert.match(text, new RegExp(`^  ${name}\\(input\\??: \\{`, 'm'));
});
