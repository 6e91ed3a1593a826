/**
 * `node tools/picture-panel.ts`: opens the panel of a daemon with agents, a link, a tunnel and pending requests, and
 * saves Chromium's screenshots as `docs/panel-*.png`. Identities differ from run to run, so no test compares the
 * pictures.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { detach } from '../src/foundation/detached.ts';
import { type Client, createClient } from '../src/operations/client.ts';
import { operations } from '../src/operations/index.ts';
import { startChromium } from '../test/support/browser/chromium.ts';
import { LocalDaemon } from './local-daemon.ts';

type Api = Client<typeof operations>;

const checkout = join(import.meta.dirname, '..');
const root = mkdtempSync(join(tmpdir(), 'svcd-panel-'));
/** Long enough for three traffic samples, which are taken every minute. */
const FIRST_SAMPLES_MS = 190_000;
const CALL_EVERY_MS = 500;
/** Time for a page to load its data. */
const SETTLED_MS = 3_000;

async function agent(api: Api, name: string, brief: string, offers: string[], serviceTcp = ''): Promise<string> {
  const keys = await api.identityGenerate();
  const { aid } = await api.agentRegister({
    operational_private_key_hex: keys.operational_private_key_hex,
    delegation_proof_hex: keys.delegation_proof_hex,
    ...(serviceTcp === '' ? {} : { service_tcp: serviceTcp }),
  });
  await api.agentPublish({ aid });
  if (offers.length > 0) await api.serviceRegister({ aid, services: offers, name, brief });
  await api.profileSet({ aid, name, brief });
  return aid;
}

async function pictures(): Promise<void> {
  const options = { checkout, node: process.execPath };
  await using near = await LocalDaemon.start({ ...options, dataDir: join(root, 'near') }, null);
  await using far = await LocalDaemon.start({ ...options, dataDir: join(root, 'far') }, near);
  await using service = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const address = service.address();
  if (address === null || typeof address === 'string') throw new Error('the service has no port');
  const bound = `127.0.0.1:${address.port}`;
  const [here, there] = [
    createClient({ baseUrl: near.api }, operations),
    createClient({ baseUrl: far.api }, operations),
  ];
  const scout = await agent(here, 'scout', 'Reads the web', ['research.web', 'lang.summary'], bound);
  await agent(here, 'ledger', 'Keeps the books', ['finance.books'], '127.0.0.1:9');
  await agent(here, 'draft', 'Tries things', []);
  const mina = await agent(there, 'Mina’s translator', 'Forty languages', ['lang.translate'], bound);
  await here.addressBookPut({ aliases: { [mina]: 'mina' }, favorites: [] });
  await there.chatRequest({ aid: mina, peer: scout, note: 'shared index of the June crawl' });
  await there.mailboxSend({
    aid: mina,
    recipient: scout,
    msg_type: 3,
    body_base64: Buffer.from('The report is ready.').toString('base64'),
  });
  await here.tunnelOpen({ aid: mina, local_aid: scout });
  const call = (): void => detach(here.fetch({ aid: mina, method: 'GET', path: '/', local_aid: scout }));
  const calls = setInterval(call, CALL_EVERY_MS);
  await using browser = await startChromium();
  await new Promise((resolve) => setTimeout(resolve, FIRST_SAMPLES_MS));
  clearInterval(calls);
  const shots = [
    { name: 'home', scheme: 'light', width: 1280, height: 860, at: '' },
    { name: 'home-dark-narrow', scheme: 'dark', width: 390, height: 844, at: '' },
    { name: 'agent', scheme: 'light', width: 1280, height: 860, at: `#/agents/${scout}` },
  ] as const;
  for (const { name, scheme, width, height, at } of shots) {
    const page = await browser.newPage({ colorScheme: scheme, viewport: { width, height } });
    await page.goto(`${near.api}/${at}`);
    await page.waitForTimeout(SETTLED_MS);
    await page.screenshot({ path: join(checkout, `docs/panel-${name}.png`) });
    await page.close();
  }
}

try {
  await pictures();
} finally {
  rmSync(root, { recursive: true, force: true });
}
