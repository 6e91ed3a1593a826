/** QUIC Initial packets (RFC 9001, 5): one packet of the engine, rewritten for any number of connections. */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { NativeQuicEndpoint } from '../../src/network/transport/quic/native-endpoint.ts';

const SALT = Buffer.from('38762cf7f55934b34d179ae6a4c80cadccbb7f0a', 'hex');
const TAG_BYTES = 16;
/** Offset of the length of the destination connection ID. */
const ID_LENGTH_AT = 5;
/** Distance from the packet number to the header protection sample. */
const SAMPLE_AFTER = 4;

interface Keys {
  readonly key: Buffer;
  readonly iv: Buffer;
  readonly protection: Buffer;
}

function expand(secret: Uint8Array, label: string, bytes: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Uint8Array.of(0, bytes, name.length), name, Uint8Array.of(0, 1)]);
  return createHmac('sha256', secret).update(info).digest().subarray(0, bytes);
}

function keysOf(connectionId: Uint8Array): Keys {
  const initial = createHmac('sha256', SALT).update(connectionId).digest();
  const client = expand(initial, 'client in', 32);
  return {
    key: expand(client, 'quic key', 16),
    iv: expand(client, 'quic iv', 12),
    protection: expand(client, 'quic hp', 16),
  };
}

function mask({ protection }: Keys, sample: Uint8Array): Buffer {
  return createCipheriv('aes-128-ecb', protection, null).update(sample);
}

function nonce({ iv }: Keys, packetNumber: Uint8Array): Buffer {
  const copy = Buffer.from(iv);
  packetNumber.forEach((byte, i) => {
    const at = copy.length - packetNumber.length + i;
    copy[at] = (copy[at] ?? 0) ^ byte;
  });
  return copy;
}

/** A variable-length integer of QUIC, and its end. */
function varint(bytes: Buffer, at: number): [value: number, end: number] {
  const length = 1 << ((bytes[at] ?? 0) >> 6);
  let value = (bytes[at] ?? 0) & 0x3f;
  for (let i = 1; i < length; i++) value = value * 256 + (bytes[at + i] ?? 0);
  return [value, at + length];
}

/** Creates Initial packets of different connections from a captured one. */
export class InitialForge {
  /** Header and packet number without protection. */
  readonly #header: Buffer;
  readonly #numberAt: number;
  readonly #payload: Buffer;

  constructor(caught: Buffer) {
    const idLength = caught[ID_LENGTH_AT] ?? 0;
    const keys = keysOf(caught.subarray(ID_LENGTH_AT + 1, ID_LENGTH_AT + 1 + idLength));
    const sourceAt = ID_LENGTH_AT + 1 + idLength;
    const [tokenLength, tokenAt] = varint(caught, sourceAt + 1 + (caught[sourceAt] ?? 0));
    const [length, numberAt] = varint(caught, tokenAt + tokenLength);
    const masking = mask(keys, caught.subarray(numberAt + SAMPLE_AFTER, numberAt + SAMPLE_AFTER + 16));
    const first = (caught[0] ?? 0) ^ ((masking[0] ?? 0) & 0x0f);
    const numberEnd = numberAt + (first & 3) + 1;
    this.#header = Buffer.from(caught.subarray(0, numberEnd));
    this.#header[0] = first;
    for (let at = numberAt; at < numberEnd; at++)
      this.#header[at] = (caught[at] ?? 0) ^ (masking[1 + at - numberAt] ?? 0);
    this.#numberAt = numberAt;
    const end = numberAt + length - TAG_BYTES;
    const opening = createDecipheriv('aes-128-gcm', keys.key, nonce(keys, this.#header.subarray(numberAt)));
    opening.setAAD(this.#header).setAuthTag(caught.subarray(end, end + TAG_BYTES));
    this.#payload = Buffer.concat([opening.update(caught.subarray(numberEnd, end)), opening.final()]);
  }

  /** Captures the packet that the engine sends when it dials. */
  static async create(): Promise<InitialForge> {
    const trap = createSocket('udp4').bind(0, '127.0.0.1');
    await once(trap, 'listening');
    const caught = once(trap, 'message');
    const endpoint = new NativeQuicEndpoint(
      { key: KeyPair.generate(), host: '127.0.0.1', port: 0 },
      { log: silentLog },
    );
    await endpoint.start();
    const enough = new AbortController();
    const dial = endpoint.dial({ host: '127.0.0.1', port: trap.address().port }, new Uint8Array(32), enough);
    const [datagram] = (await caught) as [Buffer];
    enough.abort();
    await dial.catch(() => {});
    await endpoint.stop();
    trap.close();
    return new InitialForge(datagram);
  }

  next(): Buffer {
    const header = Buffer.from(this.#header);
    const id = randomBytes(header[ID_LENGTH_AT] ?? 0);
    id.copy(header, ID_LENGTH_AT + 1);
    const keys = keysOf(id);
    const sealing = createCipheriv('aes-128-gcm', keys.key, nonce(keys, header.subarray(this.#numberAt)));
    sealing.setAAD(header);
    const packet = Buffer.concat([header, sealing.update(this.#payload), sealing.final(), sealing.getAuthTag()]);
    const masking = mask(keys, packet.subarray(this.#numberAt + SAMPLE_AFTER, this.#numberAt + SAMPLE_AFTER + 16));
    packet[0] = (packet[0] ?? 0) ^ ((masking[0] ?? 0) & 0x0f);
    for (let at = this.#numberAt; at < header.length; at++)
      packet[at] = (packet[at] ?? 0) ^ (masking[1 + at - this.#numberAt] ?? 0);
    return packet;
  }
}
