import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { agentKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { DirectoryWorld } from '../../support/directory-world.ts';
import { newIdentity } from '../../support/identities.ts';
import { ScriptedRecords } from '../../support/scripted-records.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

const AGENTS = [newIdentity(), newIdentity()];
const NODE = KeyPair.generate();
const SEED = 20_260_101;

/** A daemon that is killed and restarted with one database, while the network keeps running. */
class CrashingNode {
  readonly network: ScriptedRecords;
  world: DirectoryWorld;
  readonly #directory: string;
  #backups = 0;

  constructor(directory: string) {
    this.#directory = directory;
    this.network = new ScriptedRecords({
      now: () => this.world.clock.now(),
      monotonic: () => this.world.clock.monotonic(),
      after: () => ({ cancel: () => {} }),
    });
    this.world = this.#start(join(directory, 'node.db'), new TestClock());
  }

  #start(file: string, clock: TestClock): DirectoryWorld {
    const store = Store.open(file, MIGRATIONS, 'normal');
    const world = new DirectoryWorld({ clock, store, network: this.network, node: NODE, autoPublish: true });
    for (const agent of AGENTS) world.add(agent);
    return world;
  }

  async begin(): Promise<void> {
    await this.world.directory.start();
  }

  /** The old process no longer writes. The new one uses the database as it is, or a backup. */
  async restart(backup: string | null): Promise<void> {
    const clock = new TestClock(this.world.clock.now());
    this.world.store.close();
    this.network.beforePut = () => {};
    this.network.afterPut = () => {};
    this.world = this.#start(backup ?? join(this.#directory, 'node.db'), clock);
    await this.begin();
  }

  backup(): string {
    const file = join(this.#directory, `backup-${this.#backups++}.db`);
    this.world.store.run(`VACUUM INTO '${file}'`);
    return file;
  }

  /** Kills the daemon during a publication: before the network stores the record, or after. */
  async crash(aid: Aid, when: 'before' | 'after'): Promise<void> {
    const killed = Promise.withResolvers<void>();
    const hang = async (): Promise<never> => {
      killed.resolve();
      return new Promise(() => {});
    };
    if (when === 'before') this.network.beforePut = hang;
    else this.network.afterPut = hang;
    this.world.directory.publish(aid).catch(() => {});
    await killed.promise;
    await this.restart(null);
  }
}

type Step =
  | { readonly kind: 'publish' | 'service' | 'crash before' | 'crash after'; readonly agent: number }
  | { readonly kind: 'wait'; readonly minutes: number }
  | { readonly kind: 'kill' };

const agent = fc.nat({ max: AGENTS.length - 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom('publish', 'service', 'crash before', 'crash after'), agent }),
  fc.record({ kind: fc.constant('wait'), minutes: fc.integer({ min: 1, max: 50 }) }),
  fc.record({ kind: fc.constant('kill') }),
);

async function runStep(node: CrashingNode, one: Step): Promise<void> {
  const { directory, clock } = node.world;
  const { aid } = AGENTS['agent' in one ? one.agent : 0] ?? newIdentity();
  switch (one.kind) {
    case 'publish':
      await directory.publish(aid);
      return newestIsOurs(node, aid);
    case 'service':
      await directory.registerServices(aid, {
        services: ['a.b', 'c.d'],
        name: '',
        protocols: [],
        tags: [],
        brief: '',
        meta: null,
        ttl: 3600,
      });
      return;
    case 'crash before':
      return node.crash(aid, 'before');
    case 'crash after':
      return node.crash(aid, 'after');
    case 'wait':
      return clock.run(one.minutes * 60_000);
    case 'kill':
      return node.restart(null);
  }
}

/** The network returns the last published record. */
async function newestIsOurs(node: CrashingNode, aid: Aid): Promise<void> {
  const held = await node.network.get(agentKey(aid), RECORD.endpoints);
  assert.equal(held?.seq, node.world.directory.summary(aid).seq);
}

async function scenario(t: TestContext, work: (node: CrashingNode) => Promise<void>): Promise<void> {
  const node = new CrashingNode(temporaryDirectory(t));
  await node.begin();
  try {
    await work(node);
  } finally {
    await node.world.directory.stop();
    node.world.store.close();
  }
}

test('across crashes, no sequence number is used twice or decreases', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      await scenario(t, async (node) => {
        for (const one of steps) await runStep(node, one);
        for (const { aid } of AGENTS) {
          const numbers = node.network.kept.filter((record) => record.aid === aid).map((record) => record.seq);
          for (const [i, seq] of numbers.entries()) assert.ok(seq > (numbers[i - 1] ?? 0), numbers.join(' '));
        }
      });
    }),
    { seed: SEED, numRuns: 40 },
  );
});

test('after a restored backup the network immediately accepts new records', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 6 }),
      fc.array(step, { minLength: 1, maxLength: 8 }),
      fc.boolean(),
      async (before, lost, explicit) => {
        await scenario(t, async (node) => {
          for (const one of before) await runStep(node, one);
          const backup = node.backup();
          for (const one of lost) await runStep(node, one);
          await node.restart(backup);
          for (const { aid } of AGENTS) {
            if (explicit) await node.world.directory.publish(aid);
            else await node.world.clock.run(40 * 60_000);
            await newestIsOurs(node, aid);
          }
        });
      },
    ),
    { seed: SEED, numRuns: 30 },
  );
});
