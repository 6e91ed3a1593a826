/** Checks the test vectors of chat, test/vectors/chat.json, which other implementations can use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChatFrameReader, encodeFrame, type Frame } from '../../../src/capabilities/chat/wire.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { chatVectors } from '../../../tools/vectors/chat.ts';
import { type ChatNode, ChatWorld } from '../../support/chat-world.ts';
import { newIdentity } from '../../support/identities.ts';
import { hex, readVectors } from '../../support/vectors.ts';

interface FrameVector {
  readonly kind: string;
  readonly frame_hex: string;
  readonly [member: string]: unknown;
}
interface Said {
  readonly from: 'alice' | 'bob';
  readonly frame_hex: string;
  /** The link closes before it arrives. */
  readonly lost?: boolean;
}
interface ChatVectors {
  readonly version_hex: string;
  readonly frames: readonly FrameVector[];
  readonly malformed: readonly { why: string; bytes_hex: string }[];
  readonly streams: { alice_hex: string; bob_hex: string };
  readonly conversation: readonly (readonly Said[])[];
}

const vectors = readVectors('chat') as ChatVectors;

/** A frame in the form of the file. */
function described(frame: Frame): Readonly<Record<string, unknown>> {
  const bytes = (value: Uint8Array | null): string | undefined => (value === null ? undefined : toHex(value));
  switch (frame.kind) {
    case 'request':
      return { kind: frame.kind, n: frame.n, stream_hex: toHex(frame.stream), note: frame.note };
    case 'accept':
    case 'gone':
      return { kind: frame.kind, n: frame.n, stream_hex: bytes(frame.stream), re_hex: bytes(frame.re) };
    case 'message': {
      const { id, at, text, file } = frame.content;
      const shown = file === null ? undefined : { object_id: file.objectId, name: file.name, size: file.size };
      const content = { id_hex: toHex(id), at_ms: at, text: text ?? undefined, file: shown };
      return { kind: frame.kind, stream_hex: toHex(frame.stream), after_hex: bytes(frame.after), ...content };
    }
    case 'heard':
      return { kind: frame.kind, n: frame.n, answer: frame.answer };
    case 'receipt':
      return { kind: frame.kind, stream_hex: toHex(frame.stream), last_hex: bytes(frame.last), answer: frame.answer };
    case 'check':
      return { kind: frame.kind, stream_hex: toHex(frame.stream), after_hex: toHex(frame.after) };
  }
}

test('the file equals the output of the tool', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(chatVectors())), vectors);
});

for (const [i, { frame_hex, ...members }] of vectors.frames.entries())
  test(`frame ${i}, ${members.kind}`, () => {
    const [frame, ...more] = new ChatFrameReader().take(hex(vectors.version_hex + frame_hex));
    assert.ok(frame !== undefined && more.length === 0);
    assert.deepEqual(JSON.parse(JSON.stringify(described(frame))), members);
    assert.equal(toHex(encodeFrame(frame)), frame_hex);
  });

for (const { why, bytes_hex } of vectors.malformed)
  test(`rejected: ${why}`, () => assert.throws(() => new ChatFrameReader().take(hex(bytes_hex)), RangeError));

/** Alice, who sends exactly the bytes of the file. */
class Script {
  readonly #world: ChatWorld;
  readonly #alice: Aid;
  readonly #bob: Aid;
  readonly #node: ChatNode;
  #bobsStream: string | null = null;

  constructor(world: ChatWorld, node: ChatNode, alice: Aid, bob: Aid) {
    this.#world = world;
    this.#node = node;
    this.#alice = alice;
    this.#bob = bob;
  }

  async play(link: readonly Said[]): Promise<void> {
    const stream = await this.#world.during(this.#node.links.open(this.#alice, this.#bob, 'chat'));
    const heard: string[] = [];
    const reader = new ChatFrameReader();
    stream.on('data', (chunk: Uint8Array) =>
      heard.push(...reader.take(chunk).map((frame) => this.#asInTheFile(frame))),
    );
    stream.write(hex(vectors.version_hex));
    for (const { from, frame_hex } of link) {
      if (from === 'alice') stream.write(hex(frame_hex));
      else {
        await this.#world.until('a frame of Bob', () => heard.length > 0);
        assert.equal(heard.shift(), frame_hex);
      }
    }
    stream.destroy();
  }

  /** Bob's stream ID is random. The ID in the file replaces it. */
  #asInTheFile(frame: Frame): string {
    if (frame.kind === 'accept') this.#bobsStream = toHex(frame.stream);
    const encoded = toHex(encodeFrame(frame));
    return this.#bobsStream === null ? encoded : encoded.replaceAll(this.#bobsStream, vectors.streams.bob_hex);
  }
}

test('a conversation over two links matches the file byte for byte, and each entry is logged once', async () => {
  const world = new ChatWorld();
  const [node, b] = [await world.node('script'), await world.node('b')];
  const alice = newIdentity().aid;
  const bob = b.host().aid;
  const script = new Script(world, node, alice, bob);
  const accepted = world.until('the request', () => b.state(bob, alice) === 'in_pending');
  void accepted.then(() => b.chat.accept(bob, alice));
  for (const link of vectors.conversation) await script.play(link);
  await accepted;
  assert.deepEqual(
    b.log(bob, alice).map(({ text }) => text),
    ['Grüße', 'second'],
  );
});
