/** Debian's Chromium, driven by playwright-core, which downloads no browser. `.ci/run` installs the package. */
import { accessSync, constants, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { temporaryDirectory } from '../temporary-directory.ts';

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const PROGRAM = (process.env['PATH'] ?? '')
  .split(delimiter)
  .map((directory) => join(directory, 'chromium'))
  .find(isProgram);

/** For the option `skip` of a test: false where the browser is there, else what is missing. */
export const NO_CHROMIUM = PROGRAM === undefined ? 'the program "chromium" is not installed' : false;

/** Every name below `test` is this machine, and nothing beyond it can be reached. */
const HOSTS = 'MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.*, EXCLUDE localhost, EXCLUDE *.localhost';

const OPTIONS = { executablePath: PROGRAM ?? '', args: [`--host-resolver-rules=${HOSTS}`] };

/** Starts a browser without any state. */
export function startChromium(): Promise<Browser> {
  if (PROGRAM === undefined) throw new Error(String(NO_CHROMIUM));
  return chromium.launch(OPTIONS);
}

/** The setting of a user who blocks cookies: pages may store nothing. */
const BLOCKS = { profile: { default_content_setting_values: { cookies: 2 } } };

/** Opens a browser that gives pages no storage, for one test. */
export async function openWithoutStorage(t: TestContext): Promise<BrowserContext> {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'Default'));
  writeFileSync(join(directory, 'Default', 'Preferences'), JSON.stringify(BLOCKS));
  const context = await chromium.launchPersistentContext(directory, { ...OPTIONS, locale: 'en-GB' });
  t.after(() => context.close());
  return context;
}
