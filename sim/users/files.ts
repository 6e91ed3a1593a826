/** Files: an accepted offer has the bytes that were offered. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Random } from '../../test/support/random.ts';
import type { Agent } from '../agent.ts';
import type { Surroundings, Users } from '../user.ts';

const OFFERS = 0.4;
/** Most files are small. */
const SMALL_BYTES = 2000;
const MAX_BYTES = 200_000;
const LARGE = 0.15;

function bytesOf(random: Random): Buffer {
  const bytes = Buffer.alloc(1 + random.below(random.chance(LARGE) ? MAX_BYTES : SMALL_BYTES));
  for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt8(random.below(256), at);
  return bytes;
}

export class FileUsers implements Users {
  readonly name = 'files';
  readonly weight = 2;
  readonly #world: Surroundings;
  #offered = 0;
  #taken = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async act(agent: Agent): Promise<void> {
    const { random, agents } = this.#world;
    const to = random.pick(agents);
    if (!random.chance(OFFERS)) await this.#takeAll(agent);
    else if (to !== agent) await this.#offer(agent, to);
  }

  async #offer(from: Agent, to: Agent): Promise<void> {
    const { random, attempt } = this.#world;
    const { aid, node } = from;
    const bytes = bytesOf(random);
    const name = `file${this.#offered++}.bin`;
    await attempt(`${from.name} offers ${name}, ${bytes.length} bytes, to ${to.name}`, async () => {
      const { object_id } = await node.call('objectPut', { aid, body_base64: bytes.toString('base64'), name });
      return await node.call('fileOffer', { aid, recipient: to.aid, object_id, name, temporary: true });
    });
  }

  async #takeAll(agent: Agent): Promise<void> {
    const { attempt, violate } = this.#world;
    const { aid, node } = agent;
    const list = await attempt(`${agent.name} reads its offers`, () =>
      node.call('fileOfferList', { aid, direction: 'in', all: false }),
    );
    for (const { id, object_id, name } of list?.offers ?? []) {
      const taken = await attempt(`${agent.name} takes ${name}`, () => node.call('fileOfferAccept', { aid, id }));
      if (taken === null) continue;
      this.#taken++;
      const hash = createHash('sha256').update(readFileSync(taken.path)).digest('hex');
      if (hash !== object_id) violate('files arrive unchanged', `${name} at ${agent.name}`);
    }
  }

  async audit(): Promise<void> {
    for (const agent of this.#world.agents) await this.#takeAll(agent);
  }

  figures(): Readonly<Record<string, number>> {
    return { offered: this.#offered, taken: this.#taken };
  }
}
