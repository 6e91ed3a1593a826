/** Hostile clients of a helper, on a lab machine. A test drives them over IPC. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { Address } from '../../../../src/foundation/address.ts';
import { networkTag } from '../../../../src/network/records/node-address.ts';
import { encodeEntry } from '../../../../src/network/transport/tls/wire.ts';
import { ANSWER_BYTE, NETWORK_TAG_BYTES } from '../../../../src/network/transport/udp-socket.ts';
import { borrow } from './borrower.ts';

/** One datagram, base64. */
export interface Shot {
  readonly number: number;
  readonly to: Address;
  readonly datagram: string;
}

export type HostileCommand =
  /** Connects with a new key. Returns the status of the helper's hello. */
  | { readonly do: 'connect'; readonly url: string }
  /** Sends datagrams through the last connection, without any limit of its own. */
  | { readonly do: 'shoot'; readonly shots: readonly Shot[] }
  /** Returns whether this connection has received the answer to a datagram, base64. */
  | { readonly do: 'has'; readonly datagram: string }
  /** Answers each datagram to a port: with the same bytes but as an answer of the record network, or with others. */
  | { readonly do: 'answer'; readonly port: number; readonly bytes: string | null };

export interface HostileReply {
  readonly status?: number | null;
  readonly has?: boolean;
  readonly error?: string;
}

const NEVER_ENDS = { after: () => {} };
const tag = networkTag('');
let client: Awaited<ReturnType<typeof borrow>> | null = null;

function answerTo(datagram: Buffer): Buffer {
  const answer = Buffer.from(datagram);
  answer[NETWORK_TAG_BYTES] = ANSWER_BYTE;
  return answer;
}

async function obey(command: HostileCommand): Promise<HostileReply> {
  if (command.do === 'answer') {
    const { port, bytes } = command;
    const socket = createSocket('udp4');
    const fixed = bytes === null ? null : Buffer.from(bytes, 'base64');
    socket.on('message', (datagram, from) => socket.send(fixed ?? answerTo(datagram), from.port, from.address));
    socket.bind(port);
    await once(socket, 'listening');
    return {};
  }
  if (command.do === 'connect') {
    client = await borrow(NEVER_ENDS, command.url, { tag });
    return { status: client.reply?.status ?? null };
  }
  if (client === null) throw new Error('not connected');
  if (command.do === 'has') {
    const wanted = answerTo(Buffer.from(command.datagram, 'base64'));
    return { has: client.received.some(({ datagram }) => wanted.equals(datagram)) };
  }
  for (const { number, to, datagram } of command.shots)
    client.socket.send(encodeEntry({ number, remote: to, datagram: Buffer.from(datagram, 'base64') }));
  return {};
}

process.on('message', (command: HostileCommand) => {
  obey(command).then(
    (reply) => process.send?.(reply),
    (error: unknown) => process.send?.({ error: error instanceof Error ? error.message : 'unknown' }),
  );
});
process.on('disconnect', () => process.exit());
