import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { ERRORS, EXIT } from '../../../src/foundation/errors.ts';
import { brokenIn, shapeOf } from '../../support/json-shape.ts';
import { promised, RECORDING, record } from '../../support/promised-json.ts';

test('every error code keeps its exit code', () => {
  const now = Object.fromEntries(Object.entries(ERRORS).map(([code, { exit }]) => [code, exit]));
  if (process.env[RECORDING] !== undefined) record({ exits: now });
  const broken = Object.entries(promised().exits).filter(([code, exit]) => now[code] !== exit);
  assert.deepEqual(broken, [], 'errors with a changed exit code, or removed ones');
  const left = Object.keys(now).filter((code) => !Object.hasOwn(promised().exits, code));
  assert.deepEqual(left, [], 'not recorded: node tools/record-json.ts');
  assert.deepEqual({ ...EXIT }, { failed: 1, usage: 2, unreachable: 3, refused: 4, notFound: 5 });
});

test('reports missing, retyped and optional members, and ignores new ones', () => {
  const tunnel = {
    id: Type.String(),
    note: Type.Optional(Type.String()),
    at: Type.Union([Type.String(), Type.Null()]),
  };
  const before = shapeOf(Type.Object({ tunnels: Type.Array(Type.Object(tunnel)) }));
  assert.deepEqual(before, {
    '': 'object',
    '.tunnels': 'array',
    '.tunnels[]': 'object',
    '.tunnels[].at': 'null|string',
    '.tunnels[].id': 'string',
    '.tunnels[].note': 'string?',
  });
  const changed = { ...tunnel, id: Type.Optional(Type.String()), at: Type.Integer(), more: Type.String() };
  const { note, ...without } = changed;
  assert.ok(note);
  assert.deepEqual(brokenIn(before, shapeOf(Type.Object({ tunnels: Type.Array(Type.Object(without)) }))), [
    '.tunnels[].at was null|string, and may be number now',
    '.tunnels[].id was always there, and may be missing now',
    '.tunnels[].note is gone',
  ]);
  const { tunnels, ...same } = {
    tunnels: Type.Array(Type.Object({ ...tunnel, more: Type.String() })),
    other: Type.Null(),
  };
  assert.deepEqual(brokenIn(before, shapeOf(Type.Object({ tunnels, ...same }))), []);
});
