/**
 * The master key in the page: at most one, from its creation or import until its agent is registered. It lives outside
 * the screens, so that it survives another screen, another tab and a new login.
 */
import { useEffect } from 'preact/hooks';
import { holdPage } from './hold-page.ts';
import { useRedraw } from './redraw.ts';

/** How long the page keeps an imported master key, milliseconds. */
const RESTORED_MS = 5 * 60 * 1000;

export interface HeldKey {
  readonly aid: string;
  readonly seed: Uint8Array<ArrayBuffer>;
  /** The owner imported it. A key that was created here exists nowhere else until it is saved. */
  readonly isRestored: boolean;
}

let held: HeldKey | undefined;
let release = (): void => {};
const followers = new Set<() => void>();

/** Wipes the key. */
export function wipeKey(): void {
  release();
  held?.seed.fill(0);
  held = undefined;
  for (const follower of followers) follower();
}

/** Wipes the key if the owner imported it. */
export function wipeRestoredKey(): void {
  if (held?.isRestored === true) wipeKey();
}

/** Keeps a key in place of the previous one: an imported key for a limited time, a created one until it is wiped. */
export function holdKey(key: HeldKey): void {
  wipeKey();
  held = key;
  const end = key.isRestored ? lateWipe() : holdPage();
  addEventListener('pagehide', wipeKey);
  release = () => {
    end();
    removeEventListener('pagehide', wipeKey);
    release = () => {};
  };
  for (const follower of followers) follower();
}

function lateWipe(): () => void {
  const timer = setTimeout(wipeKey, RESTORED_MS);
  return () => clearTimeout(timer);
}

/** The current key. The component renders again when it changes. */
export function useHeldKey(): HeldKey | undefined {
  const redraw = useRedraw();
  useEffect(() => {
    followers.add(redraw);
    redraw();
    return () => {
      followers.delete(redraw);
    };
  }, []);
  return held;
}
