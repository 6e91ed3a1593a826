/**
 * A child process: a TCP service. The first byte of a connection selects the task: `e` echoes, `s` discards everything
 * and answers one byte at the end, `g` sends as many bytes as the next eight bytes specify, `h` holds the connection.
 * The argument is the listen address.
 */
import { createServer, type Socket } from 'node:net';

const CHUNK = Buffer.alloc(64 * 1024, 0x61);

function give(socket: Socket, total: number): void {
  let left = total;
  const more = (): void => {
    while (left > 0) {
      const size = Math.min(left, CHUNK.length);
      left -= size;
      if (!socket.write(size === CHUNK.length ? CHUNK : CHUNK.subarray(0, size)))
        return void socket.once('drain', more);
    }
    socket.end();
  };
  more();
}

function serve(socket: Socket): void {
  socket.on('error', () => {});
  socket.once('data', (first: Buffer) => {
    const mode = String.fromCharCode(first[0] ?? 0);
    if (mode === 'e') {
      socket.write(first);
      socket.pipe(socket);
    } else if (mode === 's') {
      socket.resume();
      socket.on('end', () => socket.end('k'));
    } else if (mode === 'g') give(socket, Number(first.readBigUInt64BE(1)));
    else socket.resume();
  });
}

const server = createServer({ allowHalfOpen: true, noDelay: true }, serve);
server.listen(0, process.argv[2] ?? '127.0.0.1', 4096, () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.send?.({ port: address.port });
});
process.on('disconnect', () => process.exit(0));
