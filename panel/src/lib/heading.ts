/** What a new place says first: its heading, in the title of the page and to who hears it. */

/**
 * Calls back with the heading as soon as there is one, as screens are loaded when they are opened.
 * @returns ends that
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
