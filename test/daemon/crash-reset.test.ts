/** Connections of local clients when the daemon crashes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';

/** A process with a server that prints its port, sends half a response, and ends as told. */
function ending(how: string) {
  const script = `
    import { createServer } from 'node:net';
    import { resetOnCrash } from './src/daemon/crash.ts';
    import { handleUnhandledErrors } from './src/daemon/crash.ts';
    resetOnCrash(process);
    handleUnhandledErrors(process, { error: () => {} });
    const server = createServer((socket) => {
      socket.write('half');
      socket.once('data', () => { ${how} });
    });
    server.listen(0, '127.0.0.1', () => console.log(server.address().port));`;
  return spawn(process.execPath, ['--input-type=module-typescript', '--eval', script], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

async function endOf(how: string): Promise<string> {
  const child = ending(how);
  const [port]: unknown[] = await once(child.stdout, 'data');
  const socket = connect(Number(String(port)), '127.0.0.1');
  const end = Promise.withResolvers<string>();
  socket.once('end', () => end.resolve('end'));
  socket.on('error', (error: NodeJS.ErrnoException) => end.resolve(error.code ?? ''));
  const exited = once(child, 'exit');
  await once(socket, 'data');
  socket.write('go');
  await exited;
  const seen = await end.promise;
  socket.destroy();
  return seen;
}

test('a crash resets open connections', async () => {
  assert.equal(await endOf("setImmediate(() => { throw new TypeError('a bug'); });"), 'ECONNRESET');
  assert.equal(await endOf('process.exit(1);'), 'ECONNRESET');
});

test('a clean exit resets nothing', async () => {
  assert.equal(await endOf('process.exit(0);'), 'end');
});
