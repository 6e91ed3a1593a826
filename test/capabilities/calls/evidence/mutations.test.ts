import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallSigner, type CallToSign } from '../../../../src/capabilities/calls/evidence/call-signer.ts';
import { EvidenceCheck, type IncomingCall } from '../../../../src/capabilities/calls/evidence/evidence-check.ts';
import { pairs } from '../../../../src/capabilities/calls/headers.ts';
import { unixSeconds } from '../../../../src/foundation/clock.ts';
import { SvcError } from '../../../../src/foundation/errors.ts';
import { DelegationVerifier } from '../../../../src/foundation/identity/delegation-verifier.ts';
import { documentedVerifier } from '../../../support/evidence-world.ts';
import { localIdentity, newIdentity } from '../../../support/identities.ts';
import { Random } from '../../../support/random.ts';
import { TestClock } from '../../../support/test-clock.ts';

/** Number of mutated requests. 100,000 take more than a minute. */
const TRIES = Number(process.env['SVC_MUTATED_CALLS'] ?? 5_000);
/** Mutated requests checked concurrently. */
const BATCH = 250;
const SEED = 20261123;

const CHARACTERS = 'aZ09+/=:;,"() #-_.?&%'.split('');
const clock = new TestClock();
const random = new Random(SEED);
const callers = [newIdentity(), newIdentity()].map(localIdentity);
const called = [newIdentity().aid, newIdentity().aid];
const provenCaller = await documentedVerifier();

const signer = new CallSigner(
  clock,
  (aid) => callers.find((one) => one.aid === aid) ?? null,
  (bytes) => Uint8Array.from({ length: bytes }, () => random.below(256)),
);

type Signed = IncomingCall & { readonly body: Uint8Array };

/** A random signed call. */
function signed(): Signed {
  const call: CallToSign = {
    caller: random.pick(callers).aid,
    called: random.pick(called),
    method: random.pick(['GET', 'POST', 'PUT', 'DELETE']),
    target: random.pick(['/', '/a/b', '/a?x=1', '/a?', '/%2e/%2E']),
    headers: random.chance(0.5) ? [] : ['Accept', '*/*', 'Signature', 'sig1=:AAAA:'],
    body: Buffer.from(random.pick(['', '{"a":1}', 'text'])),
  };
  return { ...call, headers: signer.sign(call), body: call.body ?? Buffer.alloc(0) };
}

/** A text with one character changed, added or removed. */
function changed(text: string): string {
  const at = random.below(text.length);
  const character = random.pick(CHARACTERS);
  const mutated = random.pick([
    text.slice(0, at) + character + text.slice(at + 1),
    text.slice(0, at) + character + text.slice(at),
    text.slice(0, at) + text.slice(at + 1),
  ]);
  // Whitespace around a value is ignored.
  const trimmed = mutated.trim();
  return trimmed === text ? changed(text) : trimmed;
}

const COVERED = ['signature-input', 'signature', 'svc-caller-delegation', 'content-digest'];

/** Headers with the lines of one evidence header changed. */
function withHeader({ headers }: Signed, put: (name: string, value: string) => string[]): string[] {
  const wanted = random.pick(COVERED);
  return [...pairs(headers)].flatMap(([name, value]) =>
    name.toLowerCase() === wanted && value !== 'sig1=:AAAA:' ? put(name, value) : [name, value],
  );
}

function valueIn({ headers }: Signed, wanted: string): string {
  const values = [...pairs(headers)].filter(([name]) => name.toLowerCase() === wanted.toLowerCase());
  return values.at(-1)?.[1] ?? '';
}

/** A call that differs in more than its body. */
function otherThan(call: Signed): Signed {
  const head = ({ method, target, caller, called: local }: Signed) => [method, target, caller, local].join('\n');
  const other = signed();
  return head(other) === head(call) ? otherThan(call) : other;
}

/** A call with one mutation after signing. */
function mutated(call: Signed): Signed {
  const other = otherThan(call);
  const bytes = Uint8Array.from(call.body.length === 0 ? [0] : call.body);
  const at = random.below(bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ (1 + random.below(255));
  const ways: (() => Signed)[] = [
    () => ({ ...call, method: changed(call.method) }),
    () => ({ ...call, target: changed(call.target) }),
    () => ({ ...call, caller: callers.map(({ aid }) => aid).find((aid) => aid !== call.caller) ?? call.caller }),
    () => ({ ...call, called: called.find((aid) => aid !== call.called) ?? call.called }),
    () => ({ ...call, body: bytes }),
    () => ({ ...call, headers: withHeader(call, (name, value) => [name, changed(value)]) }),
    () => ({ ...call, headers: withHeader(call, (name, value) => [name, changed(value)]) }),
    () => ({ ...call, headers: withHeader(call, (name, value) => [name, changed(value)]) }),
    () => ({ ...call, headers: withHeader(call, () => []) }),
    () => ({ ...call, headers: withHeader(call, (name, value) => [name, value, name, value]) }),
    () => ({ ...call, headers: withHeader(call, (name) => [name, valueIn(other, name)]) }),
    () => ({ ...call, headers: other.headers }),
  ];
  return random.pick(ways)();
}

/** The call as a service would receive it from a daemon that does not check evidence. */
function atService({ method, target: url, caller, headers, called: local }: Signed) {
  const lines = [...pairs([...headers, 'Svc-Caller-Aid', caller, 'Svc-Local-Aid', local])];
  const groups = Map.groupBy(lines, ([name]) => name.toLowerCase());
  const joined = groups.entries().map(([name, all]) => [name, all.map(([, value]) => value).join(', ')]);
  return { method, url, headers: Object.fromEntries(joined) };
}

/** The calls that a new check accepts as evidence. */
async function takenOf(calls: readonly Signed[]): Promise<readonly Signed[]> {
  const check = new EvidenceCheck(clock, new DelegationVerifier(), () => 0);
  const looked = calls.map(async (call) => {
    try {
      return (await check.check(call)).length > 0;
    } catch (error) {
      assert.ok(error instanceof SvcError && error.code === 'bad_evidence', String(error));
      return false;
    }
  });
  const taken = await Promise.all(looked);
  return calls.filter((_, i) => taken[i]);
}

/** True if two calls are equal: a mutation may restore the original. */
function same(a: Signed, b: Signed): boolean {
  const text = ({ body, ...rest }: Signed) => JSON.stringify([rest, [...body]]);
  return text(a) === text(b);
}

/** True if a header is repeated. The daemon rejects that; for the service it means the same. */
function repeats({ headers }: Signed): boolean {
  const lines = [...pairs(headers)].map((line) => line.join());
  return new Set(lines).size < lines.length;
}

/** The daemon leaves body verification to the service. */
function differsInBodyOnly(a: Signed, b: Signed): boolean {
  return same({ ...a, body: b.body }, b);
}

test('signed calls are accepted, and no mutation of them is', { timeout: 240_000 }, async () => {
  let tried = 0;
  while (tried < TRIES) {
    const originals = Array.from({ length: BATCH }, signed);
    const now = unixSeconds(clock);
    assert.equal((await takenOf(originals)).length, originals.length);
    const pairsOfCalls = originals
      .map((original) => ({ original, mutant: mutated(original) }))
      .filter(({ original, mutant }) => !same(original, mutant));
    const forDaemon = pairsOfCalls.filter(({ original, mutant }) => !differsInBodyOnly(original, mutant));
    assert.deepEqual(await takenOf(forDaemon.map(({ mutant }) => mutant)), []);
    for (const { original, mutant } of pairsOfCalls) {
      const at = (call: Signed) =>
        provenCaller(atService(call), call.body, { me: original.called, seen: new Set(), now });
      if (!repeats(mutant)) assert.equal(at(mutant), null, JSON.stringify(mutant));
      if (original === originals[0]) assert.equal(at(original), original.caller);
    }
    tried += pairsOfCalls.length;
  }
});
