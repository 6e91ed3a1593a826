/** Makes the browser ask before the page closes or reloads, while it contains unsaved data. */

const held = new Set<object>();

function ask(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

/** Holds the page until the returned function is called. */
export function holdPage(): () => void {
  const hold = {};
  held.add(hold);
  addEventListener('beforeunload', ask);
  return () => {
    held.delete(hold);
    if (held.size === 0) removeEventListener('beforeunload', ask);
  };
}
