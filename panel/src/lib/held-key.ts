/**
 * The master key that the page holds: one at most, from when it is made or read until its agent is registered. It is held
 * outside of the screens, so that it outlives a look at another page, another tab and a new login.
 */
import { useEffect } from 'preact/hooks';
import { holdPage } from './hold-page.ts';
import { useRedraw } from './redraw.ts';

/** How long a master key is held that its owner has already, milliseconds. */
const RESTORED_MS = 5 * 60 * 1000;

export interface HeldKey {
  readonly aid: string;
  readonly seed: Uint8Array<ArrayBuffer>;
  /** Its owner brought it; one that was made here exists nowhere else before it is saved. */
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

/** Wipes a key that its owner has already. */
export function wipeRestoredKey(): void {
  if (held?.isRestored === true) wipeKey();
}

/** Holds a key in place of the one before. One that was made here is held until it is wiped, the other for a while. */
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

/** The key that is held now, again whenever that changes. */
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
