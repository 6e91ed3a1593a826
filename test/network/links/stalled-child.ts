/**
 * A node in its own process, which its parent stops and resumes. It opens a link to the first agent that it receives,
 * then a second link on request, and reports the result. Meanwhile it regularly reports that it is running.
 */
import { once } from 'node:events';
import { SvcError } from '../../../src/foundation/errors.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import type { AgentLocation, LinkStream } from '../../../src/network/links/types.ts';
import { NativeNode } from '../../support/link-process.ts';

/** A sign of life, or finally the responses on both links, or an error code. */
export type Said = 'awake' | readonly string[] | { readonly failed: string };

/** Milliseconds between two signs of life. */
export const AWAKE_MS = 50;

const node = new NativeNode(KeyPair.generate(), 0);

function say(output: Said): void {
  process.send?.(output);
}

async function echo(link: LinkStream, text: string): Promise<string> {
  link.write(text);
  const [back]: unknown[] = await once(link, 'data');
  return String(back);
}

async function run({ aid }: AgentLocation): Promise<Said> {
  const existing = await node.links.open(node.aid, aid, 'tcp');
  await echo(existing, 'hello');
  say('awake');
  await once(process, 'message');
  const awake = setInterval(() => say('awake'), AWAKE_MS);
  try {
    const opened = await node.links.open(node.aid, aid, 'tcp');
    return [await echo(existing, 'existing'), await echo(opened, 'opened')];
  } catch (error) {
    return { failed: error instanceof SvcError ? error.code : String(error) };
  } finally {
    clearInterval(awake);
  }
}

if (process.send !== undefined) {
  process.once('disconnect', () => process.exit(0));
  await node.start();
  process.once('message', (location: AgentLocation) => {
    node.directory.set(location.aid, location);
    void run(location).then(say);
  });
  say('awake');
}
