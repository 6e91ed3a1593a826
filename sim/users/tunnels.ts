/** Tunnels: local programs reach the service of the right agent, if its access list admits the caller. */
import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Agent } from '../agent.ts';
import type { Surroundings, Users } from '../user.ts';

/** Milliseconds until a local program gives up. */
const TIMEOUT_MS = 30_000;
/** Part of the actions that close a tunnel. */
const CLOSES = 0.2;

export class TunnelUsers implements Users {
  readonly name = 'tunnels';
  readonly weight = 2;
  readonly #world: Surroundings;
  /** Tunnels that these users opened. Other users need theirs. */
  readonly #opened = new Set<string>();
  #used = 0;
  #answered = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async act(agent: Agent): Promise<void> {
    const { random, agents } = this.#world;
    const to = random.pick(agents);
    if (random.chance(CLOSES)) await this.#close(agent);
    else if (to !== agent) await this.#use(agent, to);
  }

  async #use(from: Agent, to: Agent): Promise<void> {
    const { attempt, note, violate } = this.#world;
    const { node } = from;
    const tunnel = await attempt(`${from.name} opens a tunnel to ${to.name}`, () =>
      node.call('tunnelOpen', { aid: to.aid, local_aid: from.aid }),
    );
    if (tunnel === null) return;
    this.#opened.add(`${from.aid} ${tunnel.id}`);
    const path = `/tunnel/${from.aid}/${this.#used++}`;
    const body = await this.#fetch(from, Number(tunnel.listen.split(':').at(-1)), path);
    note(`${from.name} reads ${path} of ${to.name}: ${body === null ? 'nothing' : 'an answer'}`);
    if (body === null) return;
    this.#answered++;
    if (body !== `${to.aid} ${path}`) violate('tunnels lead to their agent', `${path}: ${body}`);
  }

  /** The answer of the service; null if the connection breaks. */
  async #fetch(from: Agent, port: number, path: string): Promise<string | null> {
    const { process } = from.node;
    const { schedule } = this.#world;
    return await process.runOther(
      () =>
        new Promise<string | null>((resolve) => {
          const request = get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
            text(response).then(resolve, () => resolve(null));
          });
          request.on('error', () => resolve(null));
          // Not a timer of the daemon, which would have to end with it.
          const limit = schedule.after(TIMEOUT_MS, () => process.deliver(() => void request.destroy()));
          request.on('close', () => limit.cancel());
        }),
    );
  }

  async #close(agent: Agent): Promise<void> {
    const { attempt, random } = this.#world;
    const { node } = agent;
    const list = await attempt(`${agent.name} lists tunnels`, () => node.call('tunnelList', {}));
    const own = list?.tunnels.filter(({ id }) => this.#opened.has(`${agent.aid} ${id}`)) ?? [];
    if (own.length === 0) return;
    const { id } = random.pick(own);
    await attempt(`${agent.name} closes a tunnel`, () => node.call('tunnelClose', { id }));
  }

  async audit(): Promise<void> {}

  figures(): Readonly<Record<string, number>> {
    return { used: this.#used, answered: this.#answered };
  }
}
