import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import type { MappingProtocol } from '../../../../src/foundation/domain/reach.ts';
import { eventually } from '../../../support/eventually.ts';
import { Internet } from '../../../support/lab/internet.ts';
import { behindMappingRouter, MAPPING_NETWORKS } from '../../../support/lab/mapping-router.ts';
import type { Machine } from '../../../support/lab/namespaces.ts';
import { run } from '../../../support/programs.ts';

const PORT = 4121;
const MODULE = new URL('./mapping-process.ts', import.meta.url).pathname;

/** Sends datagrams until a response arrives. Exits with 0 if one does. */
const ASK = `const [host, port] = process.argv.slice(1);
const socket = require('node:dgram').createSocket('udp4');
socket.on('message', () => process.exit(0));
for (let i = 0; i < 5; i++) setTimeout(() => socket.send('?', Number(port), host), i * 100);
setTimeout(() => process.exit(3), 1000);`;

/** Whether a datagram from the Internet to a mapped port of the router is answered. */
async function isAnswered(outside: Machine, host: string): Promise<boolean> {
  const args = ['-t', String(outside.pid), '--preserve-credentials', '-U', '-n'];
  const { code } = await run('nsenter', [...args, process.execPath, '-e', ASK, host, String(PORT)]);
  return code === 0;
}

async function ask(child: ChildProcess, question: string): Promise<unknown> {
  const answered = once(child, 'message');
  child.send(question);
  const [answer]: unknown[] = await answered;
  return answer;
}

interface Expected {
  readonly protocol: MappingProtocol;
  readonly speaksPcp: boolean;
  /** The only protocol to use; empty for all. */
  readonly only: MappingProtocol | '';
}

async function mapsPorts(t: TestContext, { protocol, speaksPcp, only }: Expected): Promise<void> {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const [network] = MAPPING_NETWORKS;
  const lab = await behindMappingRouter(t, internet, 'host', { network, speaksPcp });
  if (lab === null) return;
  const outside = await internet.publicMachine('outside', [10]);
  assert.equal(await isAnswered(outside, lab.outerHost), false, 'the port is closed at first');
  const child = lab.host.fork(MODULE, [String(PORT), only]);
  await once(child, 'message');
  const mapped = [PORT, PORT + 1].map((port) => `${protocol} ${port} ${lab.outerHost}:${port}`);
  await eventually('ports are mapped', async () => {
    const [state, ...ports] = String(await ask(child, 'view')).split(', ');
    if (state === 'mapped') assert.deepEqual(ports, mapped);
    return state === 'mapped';
  });
  await eventually('the port is reachable from outside', () => isAnswered(outside, lab.outerHost));
  assert.equal(await ask(child, 'stop'), 'stopped');
  assert.equal(await ask(child, 'view'), 'off');
  assert.equal(await lab.isReleased(), true, 'the router removed the rule');
}

test('ports are mapped by PCP and released', (t) => mapsPorts(t, { protocol: 'pcp', speaksPcp: true, only: '' }));

test('ports are mapped by NAT-PMP and released', (t) =>
  mapsPorts(t, { protocol: 'nat-pmp', speaksPcp: true, only: 'nat-pmp' }));

test('ports are mapped by UPnP and released', (t) => mapsPorts(t, { protocol: 'upnp', speaksPcp: false, only: '' }));
