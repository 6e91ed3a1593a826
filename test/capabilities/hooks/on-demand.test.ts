import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { LISTEN_LIMIT_MS, OnDemandServices, type OnDemandState } from '../../../src/capabilities/hooks/on-demand.ts';
import { MAX_ON_DEMAND } from '../../../src/foundation/domain/hooks.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { findListeners } from '../../../src/foundation/own-listener.ts';
import { OnDemandStore } from '../../../src/foundation/store/on-demand.ts';
import { storeWithAgents } from '../../foundation/store/store-with-agents.ts';
import { eventually } from '../../support/eventually.ts';
import { LeapClock } from '../../support/leap-clock.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const IDLE_MS = 60_000;
const OTHER_USER = 4242;
/** It greets each client, then answers each text with its process ID. */
const SERVER = `require('node:net').createServer((socket) => {
  socket.on('error', () => {}).write('220 ready\\n');
  socket.on('data', () => socket.write('pid ' + process.pid + '\\n'));
}).listen(Number(process.env.PORT), '127.0.0.1');`;

class World {
  readonly clock = new LeapClock();
  readonly folder: string;
  readonly services: OnDemandServices;
  readonly #aid;
  changes = 0;
  /** A program of another user took the port of the program. */
  isPortTaken = false;

  constructor(t: TestContext) {
    // In the order of these lines, the programs end before their folder is removed.
    t.after(() => this.services.stop());
    this.folder = temporaryDirectory(t);
    const { store, aids } = storeWithAgents(1);
    const [aid] = aids;
    assert.ok(aid !== undefined);
    this.#aid = aid;
    this.services = new OnDemandServices({
      store: new OnDemandStore(store),
      clock: this.clock,
      log: silentLog,
      directory: join(this.folder, 'runs'),
      environment: () => ({ PATH: process.env['PATH'] ?? '' }),
      onChange: () => this.changes++,
      findListeners: async (port) => {
        if (!this.isPortTaken) return findListeners(port);
        if (this.state.startMs === null) await this.#forgetBegin();
        return [{ inode: '1', uid: OTHER_USER }];
      },
    });
    writeFileSync(join(this.folder, 'server.cjs'), SERVER);
  }

  async serve(text = `exec '${process.execPath}' server.cjs`, isTried = false): Promise<OnDemandState> {
    const { folder } = this;
    return this.services.set({ aid: this.#aid, command: [text], shell: true, folder, idleMs: IDLE_MS }, isTried);
  }

  get state(): OnDemandState {
    const [state] = this.services.list();
    assert.ok(state !== undefined);
    return state;
  }

  /** The files are those of a busy machine, where svcd stops a program before it has begun. */
  async #forgetBegin(): Promise<void> {
    const run = join(this.folder, 'runs', this.#aid);
    await eventually('the program begins', () => existsSync(join(run, 'begun')));
    rmSync(join(run, 'begun'));
    mkdirSync(join(run, 'code'));
  }

  /** A client that sends nothing. */
  async client(): Promise<Client> {
    const socket = connect({ host: '127.0.0.1', port: this.state.row.port });
    await once(socket, 'connect');
    return new Client(socket);
  }
}

class Client {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  text = '';

  constructor(socket: Socket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => void socket.once('close', () => resolve()));
    socket.setEncoding('utf8').on('data', (chunk: string) => (this.text += chunk));
    socket.on('error', () => {});
  }

  /** The text that the program sends next. */
  async next(): Promise<string> {
    const text = await eventually('a text', () => this.text.endsWith('\n') && this.text);
    this.text = '';
    return text;
  }

  async close(): Promise<void> {
    this.socket.destroy();
    await this.closed;
  }
}

test('services that are set at the same time cannot exceed the limit', {
  skip: process.platform === 'win32',
}, async (t) => {
  const folder = temporaryDirectory(t);
  const { store, aids } = storeWithAgents(MAX_ON_DEMAND + 2);
  const services = new OnDemandServices({
    ...{ store: new OnDemandStore(store), clock: new LeapClock(), log: silentLog, directory: join(folder, 'runs') },
    environment: () => ({}),
    onChange: () => {},
  });
  t.after(() => services.stop());
  const wanted = aids.map((aid) => services.set({ aid, command: ['true'], shell: false, folder, idleMs: IDLE_MS }));
  const outcomes = await Promise.allSettled(wanted);
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, MAX_ON_DEMAND);
  assert.equal(services.list().length, MAX_ON_DEMAND);
});

describe('a service on demand', { skip: process.platform === 'win32' }, () => {
  test('starts for a client that waits until the server speaks', async (t) => {
    const world = new World(t);
    await world.serve();
    const client = await world.client();
    assert.equal(await client.next(), '220 ready\n');
    assert.equal(world.state.starts, 1);
    await client.close();
  });

  test('runs while a connection is open, however silent, and stops when it is idle', async (t) => {
    const world = new World(t);
    await world.serve();
    const client = await world.client();
    await client.next();
    client.socket.write('?');
    const pid = await client.next();
    world.clock.leap(24 * IDLE_MS);
    client.socket.write('?');
    assert.equal(await client.next(), pid);
    const other = await world.client();
    await other.next();
    await client.close();
    world.clock.leap(24 * IDLE_MS);
    other.socket.write('?');
    assert.equal(await other.next(), pid);
    await other.close();
    await eventually('it is idle', () => {
      world.clock.leap(IDLE_MS);
      return !world.state.isRunning;
    });
    const again = await world.client();
    await again.next();
    assert.equal(world.state.starts, 2);
    await again.close();
  });

  test('neither starts nor runs on for a check that only connects', async (t) => {
    const world = new World(t);
    await world.serve();
    await (await world.client()).close();
    const half = await world.client();
    half.socket.end();
    await half.closed;
    assert.equal(world.state.starts, 0);
    const client = await world.client();
    await client.next();
    await client.close();
    await (await world.client()).close();
    await eventually('it is idle', () => {
      world.clock.leap(IDLE_MS);
      return !world.state.isRunning;
    });
    assert.equal(world.state.starts, 1);
  });

  test('does not stop because its first client left while it started', async (t) => {
    const world = new World(t);
    await world.serve(`while [ ! -f go ]; do sleep 0.02; done; exec '${process.execPath}' server.cjs`);
    const client = await world.client();
    client.socket.write('?');
    await eventually('it starts', () => world.state.starts === 1);
    await client.close();
    world.clock.leap(IDLE_MS / 4);
    writeFileSync(join(world.folder, 'go'), '');
    const other = await world.client();
    assert.equal(await other.next(), '220 ready\n');
    assert.equal(world.state.starts, 1);
    await other.close();
  });

  test('reports why its program did not start, until it has started', async (t) => {
    const world = new World(t);
    const exec = `exec '${process.execPath}' server.cjs`;
    const before = await world.serve(`[ -f fixed ] || { echo 'no such module' >&2; exit 3; }; ${exec}`);
    assert.deepEqual([before.starts, before.failure], [0, null]);
    const client = await world.client();
    await client.closed;
    const { failure, isRunning } = world.state;
    assert.deepEqual([isRunning, failure?.output], [false, 'no such module\n']);
    assert.match(failure?.problem ?? '', /exited with code 3 before it listened/);
    const { port } = world.state.row;
    assert.equal(world.services.failureAt({ host: '127.0.0.1', port }), failure?.problem);
    assert.equal(world.services.failureAt({ host: '127.0.0.1', port: port + 1 }), null);
    writeFileSync(join(world.folder, 'fixed'), '');
    await eventually('it may start again', async () => {
      world.clock.leap(1000);
      const again = await world.client();
      await Promise.race([again.closed, new Promise((resolve) => again.socket.once('data', resolve))]);
      await again.close();
      return world.state.failure === null;
    });
    assert.equal(world.changes, 2);
    assert.equal(world.services.failureAt({ host: '127.0.0.1', port }), null);
  });

  test('does not hand a client to another user who took the port of its program', async (t) => {
    const world = new World(t);
    world.isPortTaken = true;
    const { failure, isRunning } = await world.serve(undefined, true);
    assert.equal(isRunning, false);
    assert.match(failure?.problem ?? '', /Another user of this machine listens/);
    world.isPortTaken = false;
    await eventually('it may start again', async () => {
      world.clock.leap(1000);
      const client = await world.client();
      await Promise.race([client.closed, new Promise((resolve) => client.socket.once('data', resolve))]);
      await client.close();
      return world.state.failure === null;
    });
    // The program lost its port while it ran.
    world.isPortTaken = true;
    const late = await world.client();
    late.socket.write('?');
    await late.closed;
    assert.equal(late.text, '');
  });

  test('can be tried', async (t) => {
    const world = new World(t);
    const bad = await world.serve('exit 3', true);
    assert.match(bad.failure?.problem ?? '', /code 3/);
    const good = await world.serve(undefined, true);
    assert.deepEqual([good.isRunning, good.starts, good.failure], [true, 1, null]);
  });

  test('names a program that listens elsewhere, and one that cannot be started', async (t) => {
    const world = new World(t);
    const trying = world.serve('echo busy; : >busy; exec sleep 1000', true);
    await eventually('it runs', () => existsSync(join(world.folder, 'busy')));
    world.clock.leap(LISTEN_LIMIT_MS);
    const { failure } = await trying;
    assert.match(failure?.problem ?? '', /did not listen on 127\.0\.0\.1, at the port in PORT, within 30 s/);
    assert.match(failure?.output ?? '', /^busy\n/);
    const { row } = world.state;
    const missing = { ...row, folder: join(world.folder, 'missing') };
    assert.match((await world.services.set(missing, true)).failure?.problem ?? '', /\(ENOENT\)\. Its folder/);
  });
});
