/** A seed that is held for a while: gone when the page is hidden or left, after some minutes, and when it is let go. */

/** How long a master key is held at most, milliseconds. */
export const HELD_MS = 5 * 60 * 1000;

export interface HeldKey {
  readonly seed: Uint8Array<ArrayBuffer>;
  letGo(): void;
}

/** Holds a seed; `gone` is called once, when it was wiped for whatever reason. */
export function holdKey(seed: Uint8Array<ArrayBuffer>, gone: () => void): HeldKey {
  const letGo = (): void => {
    if (timer === undefined) return;
    clearTimeout(timer);
    timer = undefined;
    document.removeEventListener('visibilitychange', hidden);
    removeEventListener('pagehide', letGo);
    seed.fill(0);
    gone();
  };
  const hidden = (): void => {
    if (document.visibilityState === 'hidden') letGo();
  };
  let timer: ReturnType<typeof setTimeout> | undefined = setTimeout(letGo, HELD_MS);
  document.addEventListener('visibilitychange', hidden);
  addEventListener('pagehide', letGo);
  return { seed, letGo };
}
