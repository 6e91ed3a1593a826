import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import * as fc from 'fast-check';
import { ConfigService } from '../../../src/foundation/config/config-service.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { hostReport } from '../../../src/operations/handlers/host-report.ts';
import { nodeHandlers } from '../../../src/operations/handlers/node.ts';
import { operations } from '../../../src/operations/index.ts';
import { nodeOperations } from '../../../src/operations/node.ts';
import { type BoundOperation, bind, type Declaration } from '../../../src/operations/operation.ts';
import { fuzzApi } from '../../support/fuzz-api.ts';
import { fitting, isSchema } from '../../support/schema-arbitrary.ts';
import { startWorld, testOperations } from './support.ts';

const SEED = 20_261;
/** Need a proof with the key in `daemon.json`. */
const NEED_PROOF = ['hookAdd', 'onDemandSet'];
const aids = [1, 2, 3].map((fill) => nativeAid(new Uint8Array(32).fill(fill)));

/** A handler that returns a valid response or one of its declared errors. */
function imitation(declaration: Declaration, seed: number): BoundOperation {
  const schema: unknown = JSON.parse(JSON.stringify(declaration.output));
  assert.ok(isSchema(schema));
  const outputs = fc.sample(fitting(schema, { aids }), { numRuns: 20, seed });
  let calls = 0;
  return {
    declaration,
    async run() {
      const call = calls++;
      const code = call % 2 === 0 ? undefined : declaration.errors[(call >> 1) % declaration.errors.length];
      if (code !== undefined) throw new SvcError(code);
      return outputs[call % outputs.length];
    },
  };
}

function wholeTable(t: TestContext): BoundOperation[] {
  const dir = mkdtempSync(join(tmpdir(), 'svcd-fuzz-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const config = new ConfigService({ file: join(dir, 'config.toml'), environment: {}, flags: {} });
  const imitations = Object.values(operations).map((declaration, i) => imitation(declaration, SEED + i));
  const handlers = nodeHandlers({
    status: () => {
      throw new SvcError('internal');
    },
    config,
    filesRoot: { set: (path) => ({ path, left: 0, overridden: false }) },
    rollback: { isRolledBack: false, confirm: () => {} },
    debug: {
      identity: () => ({}),
      routing: () => ({}),
      store: () => ({}),
      stats: () => ({}),
      host: () => hostReport({}),
    },
  });
  const kept = bind(nodeOperations, handlers).filter(({ declaration }) => declaration.name !== 'status');
  const names = new Set(kept.map(({ declaration }) => declaration.name));
  return [...kept, ...imitations.filter(({ declaration }) => !names.has(declaration.name))];
}

/** The operations that succeeded. */
function succeeded(statuses: ReadonlyMap<string, number>): Set<string> {
  return new Set([...statuses.keys()].filter((key) => / 20\d$/.test(key)).map((key) => key.split(' ')[0] ?? ''));
}

test('every response to random requests matches the document', async (t) => {
  const world = await startWorld(t, { operations: wholeTable(t) });
  const document = (await world.request('GET', '/openapi.json')).json;
  const { requests, statuses } = await fuzzApi(world.url, document, { runs: 1200, seed: SEED, aids });
  assert.equal(requests, 1200);
  const seen = new Set([...statuses.keys()].map((key) => key.split(' ')[1]));
  for (const status of ['200', '400', '404', '415']) assert.ok(seen.has(status), status);
  const routes = Object.values(operations as Record<string, Declaration>).filter(({ path }) => path !== undefined);
  const answered = succeeded(statuses);
  const rare = routes.filter(({ name }) => !answered.has(name));
  // Random requests miss some operations. They get separate requests.
  const own = { runs: 40 * rare.length, seed: SEED, aids, skip: [...answered] };
  const again = succeeded((await fuzzApi(world.url, document, own)).statuses);
  const silent = rare.map(({ name }) => name).filter((name) => !again.has(name));
  assert.deepEqual(silent.sort(), NEED_PROOF, 'operations that never succeeded');
  assert.deepEqual(
    world.logged.filter(({ message }) => message.includes('unexpectedly')),
    [],
  );
});

const { broken, echo } = testOperations;

function failing(run: () => never): BoundOperation {
  return { declaration: broken, run: async () => run() };
}

test('the fuzzer detects undeclared responses', async (t) => {
  const faults: [string, BoundOperation, RegExp][] = [
    [
      'a crash',
      failing(() => {
        throw new TypeError('oops');
      }),
      /an internal error/,
    ],
    [
      'an undeclared code',
      failing(() => {
        throw new SvcError('gone');
      }),
      /does not name/,
    ],
    [
      'a code at its status that belongs to another operation',
      failing(() => {
        throw new SvcError('resolve_failed');
      }),
      /does not fit/,
    ],
    ['a wrong type', { declaration: echo, run: async () => [] }, /does not fit/],
  ];
  for (const [what, operation, expected] of faults) {
    const world = await startWorld(t, { operations: [operation] });
    const document = (await world.request('GET', '/openapi.json')).json;
    const options = { runs: 100, seed: SEED, aids, skip: ['docs', 'docsFile', 'openApi', 'metrics'] };
    await assert.rejects(fuzzApi(world.url, document, options), expected, what);
  }
  const leaky: BoundOperation = { declaration: operations.health, run: async () => ({ status: 'ok', secret: 1 }) };
  const world = await startWorld(t, { operations: [leaky] });
  const document = (await world.request('GET', '/openapi.json')).json;
  await assert.rejects(fuzzApi(world.url, document, { runs: 100, seed: SEED }), /must NOT have additional properties/);
});
