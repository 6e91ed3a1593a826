/** Streams that a peer opens on a connection after the handshake: kind, header, proof. */

import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { KnownNodes } from '../../../src/network/known-nodes.ts';
import { encodeHeader } from '../../../src/network/links/header.ts';
import { LinkResponder } from '../../../src/network/links/link-responder.ts';
import { makeProof } from '../../../src/network/links/proofs.ts';
import { DelegationFloor, MetAgents, OpenLinks, ProvenAgents } from '../../../src/network/links/proven.ts';
import { localPair } from '../../../src/network/links/stream.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { StreamDispatcher } from '../../../src/network/peers/stream-dispatcher.ts';
import { KIND, u16 } from '../../../src/network/peers/wire.ts';
import { localIdentity } from '../../support/identities.ts';
import { idle } from '../../support/idle.ts';
import { stubSession } from '../../support/stub-session.ts';
import { TestClock } from '../../support/test-clock.ts';
import { testAgent } from '../engine/agents.ts';
import { violation } from '../engine/properties.ts';
import { collectResponse, writeInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const [ALICE, BOB, CAROL] = [testAgent(1), testAgent(2), testAgent(3)];
const NODE_KEY = BOB.master.publicKey;
/** Milliseconds between two streams, so that the budget for errors of a node is full again. */
const PAUSE_MS = 200_000;

function seedsFor(clock: TestClock): Uint8Array[] {
  const { session } = stubSession(NODE_KEY, false, clock);
  const prove = (who: typeof BOB) => makeProof('caller', localIdentity(who), session.there, session.here);
  const common = { called: ALICE.aid, purpose: 'tcp', accessToken: undefined } as const;
  return [
    encodeHeader({ ...common, caller: BOB.aid, proof: prove(BOB), wantsProof: true }),
    encodeHeader({ ...common, caller: BOB.aid, proof: prove(BOB), wantsProof: false, accessToken: 'secret' }),
    encodeHeader({ ...common, caller: BOB.aid, proof: null, wantsProof: true }),
    // A proof of another agent.
    encodeHeader({ ...common, caller: CAROL.aid, proof: prove(BOB), wantsProof: true }),
  ].map(
    (header) =>
      new Uint8Array(Buffer.concat([Uint8Array.of(KIND.link), u16(header.length), header, Buffer.from('bytes')])),
  );
}

const streams: FuzzTarget = {
  name: 'link-streams',
  inputs: 500,
  maxBytes: 5000,
  edit: () => null,
  prepare: () => {
    const clock = new TestClock();
    const errors: unknown[] = [];
    const log = { ...silentLog, error: (fields: object) => void errors.push(fields) };
    const identity = localIdentity(ALICE);
    let opened: LinkStream[] = [];
    const proven = new ProvenAgents(new DelegationFloor(), new DelegationVerifier());
    const responder = new LinkResponder({
      proven,
      openLinks: new OpenLinks(),
      known: new KnownNodes(),
      met: new MetAgents({ clock }),
      clock,
      log,
      lingers: () => {},
      identity: (aid) => (aid === ALICE.aid ? identity : null),
      authorize: () => {},
    });
    responder.accept('tcp', (link) => opened.push(link));
    const gate = new StreamDispatcher({ clock, log, known: new KnownNodes() });
    gate.handle(KIND.link, (stream, session, signal) => responder.answer(stream, session, signal));
    return {
      seeds: seedsFor(clock),
      run: async (input) => {
        clock.advance(PAUSE_MS);
        opened = [];
        const { session, isClosed } = stubSession(NODE_KEY, false, clock);
        const [near, far] = localPair();
        for (const end of [near, far]) end.on('error', () => {});
        const answer = collectResponse(near);
        gate.admit(
          Object.assign(far, { connection: session.connection, isUpgraded: false, watchQueue: () => {} }),
          session,
        );
        writeInput(input, near);
        await idle();
        const response = answer();
        for (const link of opened) if (link.caller !== BOB.aid) throw violation('an agent was forged', input);
        if (errors.length > 0) throw violation('the log has an error', input, JSON.stringify(errors));
        if (opened.length > 0 && (opened.length > 1 || response[0] !== 0))
          throw violation('a link without a response', input);
        near.destroy();
        far.destroy();
        return `${opened.length} ${response[0]} ${response.length} ${isClosed()}`;
      },
    };
  },
};

export const linkStreamTargets: readonly FuzzTarget[] = [streams];
