/** The matrix as machines: a caller and a called node at each place, and helpers. */
import { LabDaemon } from '../support/lab/daemons.ts';
import { Internet, OTHER_PUBLIC } from '../support/lab/internet.ts';
import type { Slowness } from '../support/lab/slow-switch.ts';
import type { Party } from './parting.ts';
import { changesPorts, type Pair, PLACE_NAMES, type PlaceName, placeOf } from './places.ts';

/** Last bytes of public addresses: helpers, callers and called nodes without a router. */
const FIRST_HELPER = 10;
/** The other helpers, each in another /16, as nodes choose them. */
const OTHER_HELPERS = [11, 12].map((number, i) => ({ number, network: OTHER_PUBLIC[i] }));
const HELPERS = 1 + OTHER_HELPERS.length;
const OPEN = { caller: 20, called: 21 };
const BOOTSTRAP = [`203.0.113.${FIRST_HELPER}:4121`];
/** The nodes of the matrix do not act as helpers, because a helper is already connected to its clients. */
const HELPS_NOBODY = 'help_others = false\n';
const LOGS = 'log_level = "debug"\n';
/** NAT types that a record may state for changing and for stable external ports. */
const CHANGING = [4];
const KEPT = [1, 2, 3];

type Side = 'caller' | 'called';
/** The nodes at each place, one per copy. */
type Parties = Readonly<Record<Side, ReadonlyMap<PlaceName, readonly Party[]>>>;
type Start = (...options: Parameters<typeof LabDaemon.start>) => Promise<LabDaemon>;

export class World implements AsyncDisposable {
  readonly #internet: Internet;
  readonly #parties: Parties;
  readonly helpers: readonly LabDaemon[];

  private constructor(internet: Internet, parties: Parties, helpers: readonly LabDaemon[]) {
    this.#internet = internet;
    this.#parties = parties;
    this.helpers = helpers;
  }

  /**
   * Starts the required nodes, and waits until each has helpers and knows its NAT.
   * @param copies nodes of each kind; different copies do not share rate limits
   */
  static async start(slowness: Slowness, pairs: readonly Pair[], copies = 1): Promise<World> {
    const internet = await Internet.open({ slowness });
    const started: LabDaemon[] = [];
    const start: Start = async (...options) => {
      const daemon = await LabDaemon.start(...options);
      started.push(daemon);
      return daemon;
    };
    try {
      const helpers = [await start(await internet.publicMachine('helper', [FIRST_HELPER]), [], LOGS)];
      for (const { number, network } of OTHER_HELPERS) {
        const machine = await internet.publicMachine(`helper-${number}`, [number], network);
        helpers.push(await start(machine, BOOTSTRAP, LOGS));
      }
      for (const helper of helpers) await helper.until('strangers reach a helper', ({ nat_type }) => nat_type === 1);
      const parties = { caller: new Map<PlaceName, Party[]>(), called: new Map<PlaceName, Party[]>() };
      // Sequential, because parallel starts would delay each other.
      for (let copy = 0; copy < copies; copy++)
        for (const side of ['caller', 'called'] as const) {
          const names = PLACE_NAMES.filter((name) => pairs.some((pair) => pair[side] === name));
          const joined = names.map(async (name) => {
            const party = await join(internet, { side, name, copy }, start);
            parties[side].set(name, [...(parties[side].get(name) ?? []), party]);
          });
          await Promise.all(joined);
        }
      return new World(internet, parties, helpers);
    } catch (error) {
      await Promise.all(started.map((daemon) => daemon[Symbol.asyncDispose]()));
      await internet[Symbol.asyncDispose]();
      throw error;
    }
  }

  party(side: Side, name: PlaceName, copy = 0): Party {
    const party = this.#parties[side].get(name)?.[copy];
    if (party === undefined) throw new Error(`there is no ${side} ${copy} at ${name}`);
    return party;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const parties = Object.values(this.#parties).flatMap((side) => [...side.values()].flat());
    await Promise.all(
      [...this.helpers, ...parties.map(({ daemon }) => daemon)].map((one) => one[Symbol.asyncDispose]()),
    );
    await this.#internet[Symbol.asyncDispose]();
  }
}

interface Who {
  readonly side: Side;
  readonly name: PlaceName;
  readonly copy: number;
}

async function join(internet: Internet, { side, name, copy }: Who, start: Start): Promise<Party> {
  const { routers, hasIpv6 = false, isOpen = false } = placeOf(name);
  const label = `${side}-${name}-${copy}`;
  const machine =
    routers.length === 0
      ? await internet.publicMachine(label, [OPEN[side] + 2 * copy])
      : await internet.behind(label, routers, hasIpv6);
  const daemon = await start(machine, BOOTSTRAP, LOGS + HELPS_NOBODY);
  const types = changesPorts(name) ? CHANGING : KEPT;
  await daemon.until(
    `${label} has its helpers and knows its NAT`,
    ({ helpers, nat_type }) => types.includes(nat_type) && (isOpen || helpers.length === HELPERS),
  );
  const aid = await daemon.serve();
  const { node_aid } = await daemon.call<{ node_aid: string }>('GET', '/status');
  return { daemon, aid, node: node_aid };
}
