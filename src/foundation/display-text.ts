/** Formats counts and times for people, in English. */

/** `1 node`, `2 nodes`. */
export function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Formats a time relative to now: `3 min ago`, `in 20 s`. @param now Unix milliseconds */
export function relativeTime(iso: string, now: number): string {
  const seconds = Math.round((now - Date.parse(iso)) / 1000);
  const size = Math.abs(seconds);
  const words =
    size < 60
      ? `${size} s`
      : size < 3600
        ? `${Math.round(size / 60)} min`
        : size < 172_800
          ? `${Math.round(size / 3600)} h`
          : `${Math.round(size / 86_400)} days`;
  return seconds >= 0 ? `${words} ago` : `in ${words}`;
}

/** Describes how many peers a node has and how many nodes use the network through it. */
export function networkText(peers: number, clients: number): string {
  const through =
    clients === 0 ? '' : `${pluralize(clients, 'node')} ${clients === 1 ? 'uses' : 'use'} the network through this one`;
  return [...(peers > 0 || clients === 0 ? [pluralize(peers, 'peer')] : []), ...(through === '' ? [] : [through])].join(
    ', ',
  );
}
