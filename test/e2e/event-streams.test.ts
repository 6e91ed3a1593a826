/** Event streams through local addresses of a remote agent: many idle streams, and more than the limit. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { MAX_EVENT_STREAMS_PER_NODE } from '../../src/capabilities/calls/caller-limits.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';

const MIB = 1024 * 1024;
/** More than the calls that one caller may make concurrently. */
const IDLE = 200;
/** Memory that a stranger's streams may cost the called daemon, in bytes: the streams of one node, about 80 KB each. */
const MAX_GROWTH_BYTES = 96 * MIB;
const OPENED_AT_ONCE = 16;

function open(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(`${url}/events`, { agent: false }, (stream) => resolve(stream.on('error', () => {}))).on('error', reject);
  });
}

/** Opens streams; returns the accepted ones, and the statuses of the refused ones. */
async function openMany(urls: readonly string[], count: number) {
  const streams: IncomingMessage[] = [];
  const refused = new Map<string, number>();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const stream = await open(urls[next++ % urls.length] ?? '');
      if (stream.statusCode === 200) streams.push(stream);
      else {
        const code = `${stream.statusCode} ${String(stream.headers['svc-error'])}`;
        refused.set(code, (refused.get(code) ?? 0) + 1);
        stream.resume();
      }
    }
  };
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, worker));
  return { streams, refused };
}

function residentBytes(daemon: TestDaemon): number {
  return Number(readFileSync(`/proc/${daemon.process.pid}/statm`, 'utf8').split(' ')[1]) * 4096;
}

describe('event streams through local addresses', () => {
  let far: TestDaemon;
  let near: TestDaemon;
  let service: Server;
  let aid: string;
  const openResponses = new Set<ServerResponse>();

  /** A local address of the agent at a daemon, called as a new agent. */
  async function address(daemon: TestDaemon): Promise<string> {
    const local_aid = await daemon.newAgent();
    const { url } = await daemon.call<{ url: string }>('POST', `/origins/${aid}`, { local_aid });
    return url;
  }

  before(async () => {
    service = createServer((request, response) => {
      if (request.url === '/broken') {
        response.writeHead(200, { 'content-length': '5' }).flushHeaders();
        return response.socket?.destroySoon();
      }
      if (request.url !== '/events') return void response.end('ok');
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      openResponses.add(response);
      response.once('close', () => openResponses.delete(response));
    }).listen(0, '127.0.0.1');
    await once(service, 'listening');
    const listened = service.address();
    assert.ok(listened !== null && typeof listened === 'object');
    far = await TestDaemon.start();
    near = await TestDaemon.start({ bootstrap: [far.dhtAddress] });
    await Promise.all([ready(near), ready(far)]);
    aid = await far.newAgent(`127.0.0.1:${listened.port}`);
    await far.call('POST', `/agents/${aid}/publish`);
  });

  after(async () => {
    await Promise.all([near.stop(), far.stop()]);
    service.closeAllConnections();
    service.close();
  });

  test('the programs of one agent hold many idle streams in addition to calls, and each stream receives its event', async () => {
    const url = await address(near);
    const { streams, refused } = await openMany([url], IDLE);
    assert.deepEqual([streams.length, refused.size, openResponses.size], [IDLE, 0, IDLE]);
    assert.equal(await (await fetch(`${url}/x`)).text(), 'ok');
    const heard = streams.map((stream) => once(stream, 'data'));
    for (const stream of openResponses) stream.write('data: now\n\n');
    for (const [chunk] of await Promise.all(heard)) assert.equal(String(chunk), 'data: now\n\n');
    for (const stream of streams) stream.destroy();
    await eventually('the service has no stream left', () => openResponses.size === 0);
  });

  test('the part of a response that a service sent before it broke off arrives', async () => {
    const url = await address(near);
    const one = async (): Promise<void> => {
      const answer = await fetch(`${url}/broken`);
      assert.equal(answer.status, 200);
      await assert.rejects(answer.text());
    };
    await Promise.all(Array.from({ length: 40 }, one));
  });

  test('a stranger holds a limited number of streams at bounded memory, and others are served meanwhile', async () => {
    await using stranger = await TestDaemon.start({ bootstrap: [far.dhtAddress] });
    await ready(stranger);
    const addresses = [await address(stranger), await address(stranger)];
    const other = await address(near);
    const before = residentBytes(far);
    const { streams, refused } = await openMany(addresses, MAX_EVENT_STREAMS_PER_NODE + 50);
    assert.deepEqual([...refused.keys()], ['429 rate_limited']);
    assert.equal(streams.length + (refused.get('429 rate_limited') ?? 0), MAX_EVENT_STREAMS_PER_NODE + 50);
    // A stream of the agent that held more may have been dropped for one of the other agent, which was accepted then.
    await eventually('exactly the limit is left', () => {
      const open = streams.filter(({ destroyed, complete }) => !destroyed && !complete);
      return open.length === MAX_EVENT_STREAMS_PER_NODE && openResponses.size === MAX_EVENT_STREAMS_PER_NODE;
    });
    const growth = residentBytes(far) - before;
    assert.ok(growth < MAX_GROWTH_BYTES, `the called daemon grew by ${Math.round(growth / MIB)} MiB`);
    // The stranger's calls have a separate limit, and other callers have separate stream limits.
    for (const url of [...addresses, other]) assert.equal(await (await fetch(`${url}/x`)).text(), 'ok');
    const { streams: others } = await openMany([other], 20);
    assert.equal(others.length, 20);
    for (const stream of [...streams, ...others]) stream.destroy();
    await eventually('the service has no stream left', () => openResponses.size === 0);
    const again = await openMany(addresses, 20);
    assert.equal(again.streams.length, 20);
    for (const stream of again.streams) stream.destroy();
  });
});
