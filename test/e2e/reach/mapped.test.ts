/** Daemons behind real routers that map ports on request, and one behind a router whose mapping does not work. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OutputOf } from '../../../src/operations/operation.ts';
import type { reachOperations } from '../../../src/operations/reach.ts';
import { type Party, part } from '../../lab/parting.ts';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon, type LabStatus } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';
import { behindMappingRouter, MAPPING_NETWORKS } from '../../support/lab/mapping-router.ts';

const BOOTSTRAP = ['203.0.113.10:4121'];
/** NAT types in records. */
const [PUBLIC, PORT_RESTRICTED] = [1, 3];
/** The outer port that the router maps to the QUIC endpoint. */
const QUIC_PORT = 4122;
/** First handshake packets of two nodes that failed to dial back. */
const TRIED = 4;

interface Opened {
  readonly id: string;
  readonly listen: string;
  readonly path: string;
}

type Checked = OutputOf<typeof reachOperations.netcheck>;
type Ways = OutputOf<typeof reachOperations.netcheckAgent>;
type Links = OutputOf<typeof reachOperations.nodeLinks>;
type Peers = OutputOf<typeof reachOperations.nodePeers>;

async function partyOf(daemon: LabDaemon): Promise<Party> {
  const aid = await daemon.serve();
  const { node_aid: node } = await daemon.call<{ node_aid: string }>('GET', '/status');
  return { daemon, aid, node };
}

/**
 * Opens a tunnel without an existing connection, and waits until it uses a path: on a slow machine a relay may be ready
 * first.
 */
async function openTunnel(caller: Party, called: Party, expected: string): Promise<void> {
  await part(caller, called);
  const { id, listen } = await caller.daemon.call<Opened>('POST', `/tunnel/${called.aid}`, {});
  assert.equal(await caller.daemon.echo(listen, 'there and back'), 'there and back');
  await eventually(`a ${expected} path`, async () => {
    const { path } = await caller.daemon.call<Opened>('GET', `/tunnel/${id}`);
    return path === expected;
  });
  await caller.daemon.call('DELETE', `/tunnel/${id}`);
}

test('daemons behind routers that map ports are reached there, and by a punched path if a mapping does not work', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const [nowhereIn, upnpIn, pcpIn] = MAPPING_NETWORKS;
  const upnpLab = await behindMappingRouter(t, internet, 'upnp', { network: upnpIn, speaksPcp: false });
  const pcpLab = await behindMappingRouter(t, internet, 'pcp', { network: pcpIn, speaksPcp: true });
  const nowhereLab = await behindMappingRouter(t, internet, 'nowhere', {
    network: nowhereIn,
    speaksPcp: true,
    keptOutAt: QUIC_PORT,
    isShut: true,
  });
  const halfLab = await behindMappingRouter(t, internet, 'half', {
    network: nowhereIn,
    speaksPcp: true,
    keptOutAt: QUIC_PORT,
  });
  if (upnpLab === null || pcpLab === null || nowhereLab === null || halfLab === null) return;
  await using daemons = new AsyncDisposableStack();
  const started = async (daemon: Promise<LabDaemon>): Promise<LabDaemon> => daemons.use(await daemon);
  const open = await started(LabDaemon.start(await internet.publicMachine('open', [10]), []));
  const [neighbour, upnp, pcp] = await Promise.all([
    started(LabDaemon.start(await internet.publicMachine('neighbour', [11]), BOOTSTRAP)),
    started(LabDaemon.start(upnpLab.host, BOOTSTRAP)),
    started(LabDaemon.start(pcpLab.host, BOOTSTRAP)),
  ]);
  for (const one of [open, neighbour, upnp, pcp])
    await one.until('strangers reach it', ({ nat_type }) => nat_type === PUBLIC);
  const [byUpnp, byPcp] = [await partyOf(upnp), await partyOf(pcp)];
  const mappedOf = async (daemon: LabDaemon): Promise<readonly string[]> => {
    const { addresses } = await daemon.call<Checked>('GET', '/node/netcheck');
    return addresses.map(({ address, source, verified_by }) => `${address} ${source} ${verified_by}`);
  };

  await t.test('another node has connected through the port before it is published', async () => {
    for (const [daemon, { outerHost }] of [
      [upnp, upnpLab],
      [pcp, pcpLab],
    ] as const)
      await eventually('the mapped port is verified', async () =>
        (await mappedOf(daemon)).includes(`${outerHost}:${QUIC_PORT} mapped helper`),
      );
  });

  await t.test('each is reached at the port that its router maps, by UPnP and by PCP', async () => {
    await openTunnel(byPcp, byUpnp, 'mapped');
    const { links } = await upnp.call<Links>('GET', '/node/links');
    assert.equal(
      links.find(({ node, current }) => current && node === byPcp.node)?.path,
      'mapped',
      'as seen by the daemon too',
    );
    await openTunnel(byUpnp, byPcp, 'mapped');
  });

  const [nowhere, half] = await Promise.all([
    started(LabDaemon.start(nowhereLab.host, BOOTSTRAP)),
    started(LabDaemon.start(halfLab.host, BOOTSTRAP)),
  ]);
  const [unreached, halfReached] = [await partyOf(nowhere), await partyOf(half)];
  const helpersOf = async (daemon: LabDaemon): Promise<Checked['helpers']> =>
    (await daemon.call<Checked>('GET', '/node/netcheck')).helpers;
  const isHelped = ({ helpers, nat_type }: LabStatus): boolean => helpers.length === 3 && nat_type === PORT_RESTRICTED;

  await t.test('an unreachable node has helpers in separate networks', async () => {
    await nowhere.until('it has helpers', isHelped);
    const blocks = (await helpersOf(nowhere)).map(({ address }) => address.split('.').slice(0, 2).join('.'));
    assert.deepEqual(blocks.toSorted(), ['192.0', '198.51', '203.0']);
  });

  const strangers = [await partyOf(open), await partyOf(neighbour)];
  /** From a node that does not help it, because its helpers have a connection to it. */
  const punchedByStranger = async (called: Party): Promise<void> => {
    const helpers = await helpersOf(called.daemon);
    const stranger = strangers.find(({ node }) => helpers.every((helper) => helper.node !== node));
    assert.ok(stranger !== undefined);
    await openTunnel(stranger, called, 'punched');
  };

  await t.test('a port that does not work is not published, although the router has mapped it', async () => {
    const there = `${nowhereLab.outerHost}:${QUIC_PORT}`;
    await eventually('other nodes have tried to dial it', async () => {
      const { ways } = await open.call<Ways>('GET', `/node/netcheck/${unreached.aid}`);
      const reported = ways.flatMap(({ path, to }) => (path === 'punched' || path === 'relay' ? [] : to));
      assert.ok(!reported.includes(there), reported.join());
      return (await nowhereLab.keptOut()) >= TRIED;
    });
    assert.ok((await mappedOf(nowhere)).includes(`${there} mapped null`), (await mappedOf(nowhere)).join());
    await punchedByStranger(unreached);
  });

  await t.test('a node that only the record network can reach has helpers too', async () => {
    // Not `is_reached` of the node: it is false as soon as dials to the mapped port have failed.
    await eventually('the record network reaches it', async () => {
      const { peers } = await open.call<Peers>('GET', '/node/peers');
      return peers.some(({ address }) => address.startsWith(`${halfLab.outerHost}:`));
    });
    await half.until('it has helpers', isHelped);
    assert.ok((await halfLab.keptOut()) > 0);
    const there = `${halfLab.outerHost}:${QUIC_PORT} mapped null`;
    assert.ok((await mappedOf(half)).includes(there), (await mappedOf(half)).join());
    await punchedByStranger(halfReached);
  });
});
