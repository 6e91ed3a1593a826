import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bindStreams } from '../../../src/operations/handlers/exchange.ts';
import { pageStreams } from '../../../src/operations/pages.ts';

const handlers = { docs: () => {}, metrics: () => {}, openApi: () => {}, docsFile: async () => {} };

test('each stream is served by the handler of the same name, in the order of its table', () => {
  const bound = bindStreams(pageStreams, handlers);
  assert.deepEqual(
    bound.map(({ declaration }) => declaration),
    Object.values(pageStreams),
  );
  assert.deepEqual(
    bound.map(({ handle }) => handle),
    [handlers.openApi, handlers.docs, handlers.docsFile, handlers.metrics],
  );
});

test('a handler without a declaration serves no stream', () => {
  const { docs, metrics } = pageStreams;
  const bound = bindStreams({ metrics, docs }, handlers);
  assert.deepEqual(
    bound.map(({ declaration: { name } }) => name),
    ['metrics', 'docs'],
  );
});
