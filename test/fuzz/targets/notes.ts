/** Notes: sealed payloads, their contents, and their delivery. */
import { decodeLetter, LetterVerifier, messageId, NoteOpener } from '../../../src/capabilities/notes/letter.ts';
import { readRequest } from '../../../src/capabilities/notes/note-links.ts';
import { equalBytes } from '../../../src/foundation/bytes.ts';
import { parseAid } from '../../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { sealingKeyOf } from '../../../src/foundation/keys/sealed-box.ts';
import { decodeNotePayload } from '../../../src/foundation/records/notes.ts';
import { encryptionKeyId } from '../../../src/foundation/records/payloads.ts';
import { testAgent } from '../engine/agents.ts';
import { refusal, shapeOf, violation } from '../engine/properties.ts';
import { vectorBytes, vectorTexts } from '../engine/seeds.ts';
import { linkPair, NEVER, writeInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const NAMES = { caller: testAgent(1).aid, called: testAgent(2).aid };
const REFUSALS = ['bad_record', 'bad_delegation'] as const;
const RECIPIENT = parseAid(vectorTexts('notes', 'recipient.aid')[0] ?? '');
const KEYS = vectorBytes('notes', 'keys.*.private_key_hex').map(sealingKeyOf);

const letter: FuzzTarget = {
  name: 'note-letter',
  inputs: 2500,
  prepare: () => {
    const seeds = vectorBytes('notes', 'notes.*.letter_hex');
    const verifier = new LetterVerifier({ delegations: new DelegationVerifier() });
    return {
      seeds,
      run: async (input) => {
        try {
          const read = decodeLetter(input, RECIPIENT);
          if (messageId(read).length !== 32) throw violation('an id with a wrong length', input);
          await verifier.verify(read, KEYS[0]?.publicKey ?? new Uint8Array());
        } catch (error) {
          return refusal(error, REFUSALS);
        }
        if (!seeds.some((seed) => equalBytes(seed, input))) throw violation('a note was forged', input);
        return 'verified';
      },
    };
  },
};

/** The payload of a note, opened with every key that its id could mean. */
const sealed: FuzzTarget = {
  name: 'sealed-note',
  inputs: 300,
  edit: () => null,
  prepare: () => {
    const seeds = vectorBytes('notes', 'notes.*.payload_hex');
    const openers = KEYS.map((key) => new NoteOpener(key));
    return {
      seeds,
      run: async (input) => {
        const note = decodeNotePayload(input);
        if (note === null) return 'no note';
        const opener =
          openers.find(({ publicKey }) => equalBytes(encryptionKeyId(publicKey), note.keyId)) ?? openers[0];
        try {
          opener?.open(note, RECIPIENT);
        } catch (error) {
          return refusal(error, ['bad_record']);
        }
        if (!seeds.some((seed) => equalBytes(seed, input))) throw violation('a note was forged', input);
        return 'opened';
      },
    };
  },
};

const request: FuzzTarget = {
  name: 'note-request',
  inputs: 2000,
  maxBytes: 40_000,
  edit: () => null,
  prepare: () => ({
    seeds: [
      Uint8Array.of(2),
      ...vectorBytes('notes', 'notes.*.record_hex').map((record) =>
        Uint8Array.of(1, record.length >> 8, record.length & 0xff, ...record),
      ),
    ],
    run: async (input) => {
      const [near, link] = linkPair(NAMES, 'note');
      writeInput(input, near);
      try {
        return shapeOf(await readRequest(link, NEVER));
      } catch (error) {
        return refusal(error, ['protocol_error']);
      } finally {
        near.destroy();
        link.destroy();
      }
    },
  }),
};

export const noteTargets: readonly FuzzTarget[] = [letter, sealed, request];
