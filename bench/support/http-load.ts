/** A small HTTP load generator: a fixed number of keep-alive connections, one request at a time on each. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const HEAD_END = Buffer.from('\r\n\r\n');

/** Bytes of one response; all responses to the same request have this length. */
async function answerLength(port: number, request: string): Promise<number> {
  const socket = connect(port, '127.0.0.1');
  socket.write(request);
  let seen = Buffer.alloc(0);
  for (;;) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    seen = Buffer.concat([seen, chunk]);
    const head = seen.indexOf(HEAD_END);
    const text = seen.subarray(0, Math.max(head, 0)).toString();
    if (head < 0) continue;
    if (!text.startsWith('HTTP/1.1 2')) throw new Error(text);
    socket.destroy();
    return head + HEAD_END.length + Number(/content-length: (\d+)/i.exec(text)?.[1]);
  }
}

/** Responses received in `ms` over `connections` connections. */
export async function load(port: number, request: string, connections: number, ms: number): Promise<number> {
  const length = await answerLength(port, request);
  let answers = 0;
  let running = true;
  const sockets = Array.from({ length: connections }, (): Socket => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => socket.write(request));
    let bytes = 0;
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      if (bytes < length) return;
      bytes -= length;
      answers++;
      if (running) socket.write(request);
    });
    return socket;
  });
  // Busy polling: otherwise the server would spend CPU time to wake this process with each write.
  const spin = (): void => {
    if (running) setImmediate(spin);
  };
  spin();
  await new Promise((resolve) => setTimeout(resolve, ms));
  running = false;
  for (const socket of sockets) socket.destroy();
  return answers;
}
