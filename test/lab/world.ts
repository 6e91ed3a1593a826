/** The matrix as machines: a caller and a called node at each place, and helpers. */
import { setTimeout as delay } from 'node:timers/promises';
import { exitText } from '../../src/foundation/domain/exit.ts';
import { eventually } from '../support/eventually.ts';
import { LabDaemon, type LabStatus } from '../support/lab/daemons.ts';
import { Internet, OTHER_PUBLIC } from '../support/lab/internet.ts';
import { behindLimits, type LimitedMachine, type LimitKind } from '../support/lab/limits/limits.ts';
import type { Slowness } from '../support/lab/slow-switch.ts';
import type { Party } from './parting.ts';
import { changesPorts, type Pair, PLACE_NAMES, type PlaceName, placeOf, promised } from './places.ts';

/** Last bytes of public addresses: helpers, callers and called nodes without a router. */
const FIRST_HELPER = 10;
/** The other helpers, each in another /16, as nodes choose them. */
const OTHER_HELPERS = [11, 12].map((number, i) => ({ number, network: OTHER_PUBLIC[i] }));
const HELPERS = 1 + OTHER_HELPERS.length;
const OPEN = { caller: 20, called: 21 };
const BOOTSTRAP = [`203.0.113.${FIRST_HELPER}:4121`];
/** For nodes that may have IPv6 only. */
const BOOTSTRAP_V6 = `[2001:db8:0:1::${FIRST_HELPER}]:4121`;
/** All interfaces, also for IPv6. */
const EVERYWHERE = { listen: ':4121' };
/** How long a node waits before its user logs in to a captive portal, milliseconds. */
const LOGIN_MS = 5_000;
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
  /** Machines in networks that allow little. */
  readonly #limited: readonly LimitedMachine[];

  private constructor(
    internet: Internet,
    parties: Parties,
    helpers: readonly LabDaemon[],
    limited: readonly LimitedMachine[],
  ) {
    this.#internet = internet;
    this.#parties = parties;
    this.helpers = helpers;
    this.#limited = limited;
  }

  /**
   * Starts the required nodes, and waits until each has helpers and knows its NAT.
   * @param copies nodes of each kind; different copies do not share rate limits
   */
  static async start(slowness: Slowness, pairs: readonly Pair[], copies = 1): Promise<World> {
    const internet = await Internet.open({ slowness });
    const limited: LimitedMachine[] = [];
    const started: LabDaemon[] = [];
    const start: Start = async (...options) => {
      const daemon = await LabDaemon.start(...options);
      started.push(daemon);
      return daemon;
    };
    try {
      const hasLimits = pairs.some((pair) => promised(pair) === 'any');
      const options = hasLimits ? EVERYWHERE : {};
      const helpers = [await start(await internet.publicMachine('helper', [FIRST_HELPER]), [], LOGS, options)];
      for (const { number, network } of OTHER_HELPERS) {
        const machine = await internet.publicMachine(`helper-${number}`, [number], network);
        helpers.push(await start(machine, BOOTSTRAP, LOGS, options));
      }
      for (const helper of helpers) await helper.until('strangers reach a helper', ({ nat_type }) => nat_type === 1);
      const parties = { caller: new Map<PlaceName, Party[]>(), called: new Map<PlaceName, Party[]>() };
      // Sequential, because parallel starts would delay each other.
      for (let copy = 0; copy < copies; copy++)
        for (const side of ['caller', 'called'] as const) {
          const names = PLACE_NAMES.filter((name) => pairs.some((pair) => pair[side] === name));
          const joined = names.map(async (name) => {
            const { limit } = placeOf(name);
            const who = { side, name, copy };
            const party =
              limit === undefined
                ? await join(internet, who, start)
                : await joinLimited(await limitedMachine(internet, who, limit, limited), who, start);
            parties[side].set(name, [...(parties[side].get(name) ?? []), party]);
          });
          await Promise.all(joined);
        }
      return new World(internet, parties, helpers, limited);
    } catch (error) {
      await Promise.all(started.map((daemon) => daemon[Symbol.asyncDispose]()));
      for (const one of limited) one.leave();
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
    for (const one of this.#limited) one.leave();
    await this.#internet[Symbol.asyncDispose]();
  }
}

interface Who {
  readonly side: Side;
  readonly name: PlaceName;
  readonly copy: number;
}

function labelOf({ side, name, copy }: Who): string {
  return `${side}-${name}-${copy}`;
}

async function join(internet: Internet, who: Who, start: Start): Promise<Party> {
  const { side, name, copy } = who;
  const { routers, hasIpv6 = false, isOpen = false } = placeOf(name);
  const label = labelOf(who);
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
  return await partyOf(daemon, await daemon.serve());
}

async function partyOf(daemon: LabDaemon, aid: string): Promise<Party> {
  const { node_aid } = await daemon.call<{ node_aid: string }>('GET', '/status');
  return { daemon, aid, node: node_aid };
}

async function limitedMachine(
  internet: Internet,
  who: Who,
  limit: LimitKind,
  all: LimitedMachine[],
): Promise<LimitedMachine> {
  const machine = await behindLimits(internet, labelOf(who), limit);
  all.push(machine);
  return machine;
}

/** Reports when the node is in the network. One that never is, takes part in the tries, which fail. */
async function joinLimited(limited: LimitedMachine, who: Who, start: Start): Promise<Party> {
  const label = labelOf(who);
  const began = performance.now();
  const bootstrap = [...BOOTSTRAP, BOOTSTRAP_V6];
  const daemon = await start(limited.machine, bootstrap, LOGS + HELPS_NOBODY, { ...EVERYWHERE, env: limited.env });
  const startedAt = performance.now();
  const since = (at: number): string => `${Math.round(performance.now() - at)} ms`;
  let loggedInAt = startedAt;
  if (placeOf(who.name).limit === 'portal') {
    await delay(LOGIN_MS);
    await limited.logIn();
    loggedInAt = performance.now();
  }
  const aid = await daemon.register();
  const isUdpUsable = placeOf(who.name).isDirect !== false;
  const state = await daemon
    .until(
      `${label} is in the network`,
      ({ network_ready, exit, helpers }) =>
        network_ready && (isUdpUsable || (exit.state === 'tls' && helpers.length > 0)),
    )
    .then(
      ({ exit }) =>
        `in the network ${since(loggedInAt)} after ${loggedInAt === startedAt ? 'its start' : 'the login'}, ${exitText(exit)}`,
      async () => {
        const { network_ready, exit } = await daemon.call<LabStatus>('GET', '/status');
        return `not connected after ${since(began)}: network_ready ${network_ready}, ${exitText(exit)}`;
      },
    );
  console.log(`${label}: ${state}`);
  await eventually(`${label} is published`, async () => {
    const { status } = await daemon.ask('POST', `/agents/${aid}/publish`);
    return status < 300;
  }).catch((error: unknown) => console.log(error instanceof Error ? error.message : error));
  return await partyOf(daemon, aid);
}
