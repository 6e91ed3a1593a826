/** The engine's spellings of keys and addresses, which are libp2p's, from and to ours. */
import { base58 } from '@scure/base';
import type { Address } from '../../../foundation/address.ts';
import { PUBLIC_KEY_BYTES } from '../../../foundation/identity/ed25519.ts';
import type { KeyPair } from '../../../foundation/identity/keys.ts';
import { canonicalIp } from '../../../foundation/ip.ts';

/** Protobuf `PrivateKey { type: Ed25519, data: 64 bytes }`; seed and public key follow. */
const PRIVATE_KEY_HEADER = Uint8Array.of(0x08, 0x01, 0x12, 0x40);

/** Multihash "identity" of 36 bytes, then protobuf `PublicKey { type: Ed25519, data: 32 bytes }`. */
const PEER_ID_HEADER = Uint8Array.of(0x00, 0x24, 0x08, 0x01, 0x12, 0x20);

/** Above the 52 characters of an Ed25519 peer id: longer text is not decoded. */
const MAX_PEER_ID_CHARS = 64;

const MULTIADDR = /^\/ip[46]\/([^/]+)\/udp\/(\d{1,5})\/quic-v1\/p2p\/([^/]+)$/;

/** A private key as the engine wants it. Secret. */
export function privateKeyProto(key: KeyPair): Uint8Array {
  return Buffer.concat([PRIVATE_KEY_HEADER, key.seed, key.publicKey]);
}

/** The Ed25519 key in a peer id; null where it holds another kind of key. */
export function keyOfPeerId(peerId: string): Uint8Array | null {
  if (peerId.length > MAX_PEER_ID_CHARS) return null;
  try {
    const bytes = base58.decode(peerId);
    if (bytes.length !== PEER_ID_HEADER.length + PUBLIC_KEY_BYTES) return null;
    return PEER_ID_HEADER.every((byte, index) => bytes[index] === byte) ? bytes.slice(PEER_ID_HEADER.length) : null;
  } catch {
    return null;
  }
}

export interface Peer {
  readonly address: Address;
  readonly key: Uint8Array;
}

/** Address and proven key of a connection's other side; null where the text is not of the known form. */
export function parsePeer(multiaddr: string): Peer | null {
  const [, host, port, peerId] = MULTIADDR.exec(multiaddr) ?? [];
  if (host === undefined || port === undefined || peerId === undefined) return null;
  const key = keyOfPeerId(peerId);
  const ip = canonicalIp(host);
  return key === null || ip === null ? null : { address: { host: ip, port: Number(port) }, key };
}
