/** Announces the heading of a new screen in the page title and to screen readers. */

/**
 * Calls back when the heading exists, because screens load when they open.
 *
 * @returns stops it
 */
export function whenHeaded(within: HTMLElement, headed: (heading: HTMLElement) => void): () => void {
  const look = (): boolean => {
    const heading = within.querySelector('h1');
    if (heading !== null) headed(heading);
    return heading !== null;
  };
  if (look()) return () => {};
  const watch = new MutationObserver(() => {
    if (look()) watch.disconnect();
  });
  watch.observe(within, { childList: true, subtree: true });
  return () => watch.disconnect();
}
