/** The first bytes of connections and of link streams. */
import { encodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { decodeHeader, encodeHeader } from '../../../src/network/links/header.ts';
import { decodeProof, encodeProof, type Proof } from '../../../src/network/links/proofs.ts';
import { localPair } from '../../../src/network/links/stream.ts';
import { networkId, receiveHello } from '../../../src/network/peers/greeter.ts';
import { parsePeer } from '../../../src/network/transport/quic/engine.ts';
import { testAgent } from '../engine/agents.ts';
import { bytesOf, decoder, refusal, shapeOf, textOf } from '../engine/properties.ts';
import { NEVER, writeInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const [ALICE, BOB] = [testAgent(1), testAgent(2)];
const PROOF: Proof = { delegation: encodeDelegation(ALICE.delegation), signature: new Uint8Array(64).fill(3) };

const header = decoder({
  name: 'link-header',
  inputs: 5000,
  edit: () => null,
  seeds: () => {
    const common = { caller: ALICE.aid, called: BOB.aid };
    return [
      encodeHeader({ ...common, purpose: 'tcp', accessToken: undefined, proof: null, wantsProof: false }),
      encodeHeader({ ...common, purpose: 'http', accessToken: 'Grüße', proof: PROOF, wantsProof: true }),
    ];
  },
  decode: decodeHeader,
  encode: encodeHeader,
  canonical: true,
});

const proof = decoder({
  name: 'link-proof',
  inputs: 5000,
  edit: () => null,
  seeds: () => [encodeProof(PROOF)],
  decode: decodeProof,
  encode: encodeProof,
  canonical: true,
});

const NETWORK = networkId('fuzz');

const hello: FuzzTarget = {
  name: 'hello',
  inputs: 1500,
  maxBytes: 200,
  edit: () => null,
  prepare: () => ({
    seeds: [1, 4].map((kind) => new Uint8Array([kind, 1, ...NETWORK, ...new Uint8Array(32), ...new Uint8Array(16)])),
    run: async (input) => {
      const [near, far] = localPair();
      for (const end of [near, far]) end.on('error', () => {});
      writeInput(input, near);
      try {
        return shapeOf(await receiveHello(far, NETWORK, NEVER));
      } catch (error) {
        return refusal(error, ['protocol_error']);
      } finally {
        near.destroy();
        far.destroy();
      }
    },
  }),
};

/** Addresses in the format of the transport, which receives them from strangers. */
const peer = decoder({
  name: 'multiaddr',
  inputs: 3000,
  edit: () => null,
  words: ['/ip4/', '/ip6/', '/udp/', '/quic-v1', '/p2p/', '/dns4/', '12D3KooW', '::', '%'],
  seeds: () => bytesOf('/ip4/192.0.2.1/udp/4122/quic-v1/p2p/12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf'),
  decode: (bytes) => parsePeer(textOf(bytes)) ?? { none: true },
});

export const linkTargets: readonly FuzzTarget[] = [header, proof, hello, peer];
