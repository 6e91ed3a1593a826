import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import type { MappingProtocol } from '../../../src/foundation/domain/reach.ts';
import { eventually } from '../../support/eventually.ts';
import { behindMappingRouter, OUTER_HOST } from '../../support/lab/mapping-router.ts';

const PORT = 4121;
const MODULE = new URL('./mapping-process.ts', import.meta.url).pathname;

async function ask(child: ChildProcess, question: string): Promise<unknown> {
  const answered = once(child, 'message');
  child.send(question);
  const [answer]: unknown[] = await answered;
  return answer;
}

interface Expected {
  readonly protocol: MappingProtocol;
  readonly speaksPcp: boolean;
  /** The only protocol that is used; empty for all of them. */
  readonly only: MappingProtocol | '';
}

async function mapsPorts(t: TestContext, { protocol, speaksPcp, only }: Expected): Promise<void> {
  const lab = await behindMappingRouter(t, speaksPcp);
  if (lab === null) return;
  assert.equal(await lab.isAnswered(PORT), false, 'nothing gets in before');
  const child = lab.host.fork(MODULE, [String(PORT), only]);
  await once(child, 'message');
  const mapped = [PORT, PORT + 1].map((port) => `${protocol} ${port} ${OUTER_HOST}:${port}`);
  await eventually('ports are mapped', async () => {
    const [state, ...ports] = String(await ask(child, 'view')).split(', ');
    if (state === 'mapped') assert.deepEqual(ports, mapped);
    return state === 'mapped';
  });
  assert.equal(await lab.isAnswered(PORT), true, 'strangers reach the port from outside');
  assert.equal(await ask(child, 'stop'), 'stopped');
  assert.equal(await ask(child, 'view'), 'off');
  assert.equal(await lab.isReleased(), true, 'the router keeps no rule');
}

test('a router that speaks PCP maps ports, and takes them back', (t) =>
  mapsPorts(t, { protocol: 'pcp', speaksPcp: true, only: '' }));

test('a router maps ports by NAT-PMP, and takes them back', (t) =>
  mapsPorts(t, { protocol: 'nat-pmp', speaksPcp: true, only: 'nat-pmp' }));

test('a router that speaks UPnP only maps ports, and takes them back', (t) =>
  mapsPorts(t, { protocol: 'upnp', speaksPcp: false, only: '' }));
