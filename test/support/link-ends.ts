/** Both ends of an in-memory link. */
import { asLink, localPair } from '../../src/network/links/stream.ts';
import type { LinkStream } from '../../src/network/links/types.ts';
import { newIdentity } from './identities.ts';

const [CALLER, CALLED] = [newIdentity().aid, newIdentity().aid];
/** The other node of every link. */
const NODE_KEY = new Uint8Array(32).fill(7);

/** Both ends of an in-memory link between two fixed agents. */
export function linkEnds(): readonly [LinkStream, LinkStream] {
  const path = () =>
    ({ kind: 'direct', remote: { host: '198.51.100.7', port: 4122 }, source: '198.51.100.7', rttMs: 1 }) as const;
  const names = { caller: CALLER, called: CALLED, purpose: 'tcp', accessToken: undefined, nodeKey: NODE_KEY } as const;
  const [near, far] = localPair();
  for (const end of [near, far]) end.on('error', () => {});
  return [asLink(near, names, path), asLink(far, names, path)];
}
