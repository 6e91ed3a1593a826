/** Edits the address book without losing concurrent changes of other programs. */
import { SvcError } from '../foundation/errors.ts';
import type { LabelBook, Labels } from '../foundation/labels.ts';
import type { addressBookOperations } from './address-book.ts';
import type { Client } from './client.ts';

/** Attempts before a conflict is reported. */
const MAX_TRIES = 8;
/** HTTP status: the address book has changed since it was read. */
const CHANGED = 412;

/**
 * Changes the labels. If another program changed the book since it was read, reads it again and retries.
 * @param edit returns the new labels. Without `other_labels`, agents that still have a label keep their further ones
 * @throws SvcError what `edit` throws, and the errors of the daemon
 */
export async function changeBook(
  client: Client<typeof addressBookOperations>,
  edit: (book: LabelBook) => LabelBook,
  tries = MAX_TRIES,
): Promise<void> {
  let ifMatch: string | undefined;
  const onVersion = (etag: string): void => {
    ifMatch = etag;
  };
  const { favorites, ...book } = await client.addressBookGet({}, { onVersion });
  const { aliases, other_labels: others } = edit(book);
  // A daemon without further labels rejects the member.
  const isPlain = others === undefined || (Object.keys(others).length === 0 && book.other_labels === undefined);
  const more = isPlain ? {} : { other_labels: mutable(others) };
  try {
    await client.addressBookPut({ aliases, ...more, favorites }, { ifMatch });
  } catch (error) {
    if (!(error instanceof SvcError) || error.status !== CHANGED || tries === 1) throw error;
    await changeBook(client, edit, tries - 1);
  }
}

function mutable(others: NonNullable<LabelBook['other_labels']>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(others).map(([aid, labels]) => [aid, [...labels]]));
}

/** Changes the labels that are shown, as `changeBook`. */
export function changeLabels(
  client: Client<typeof addressBookOperations>,
  edit: (labels: Labels) => Labels,
): Promise<void> {
  return changeBook(client, ({ aliases }) => ({ aliases: edit(aliases) }));
}
