/** Edits the address book without losing concurrent changes of other programs. */
import { SvcError } from '../foundation/errors.ts';
import type { addressBookOperations } from './address-book.ts';
import type { Client } from './client.ts';

/** Attempts before a conflict is reported. */
const MAX_TRIES = 8;
/** HTTP status: the address book has changed since it was read. */
const CHANGED = 412;

type Labels = Readonly<Record<string, string>>;

/**
 * Changes the labels. If another program changed the book since it was read, reads it again and retries.
 * @throws SvcError what `edit` throws, and the errors of the daemon
 */
export async function changeLabels(
  client: Client<typeof addressBookOperations>,
  edit: (labels: Labels) => Labels,
  tries = MAX_TRIES,
): Promise<void> {
  let ifMatch: string | undefined;
  const onVersion = (etag: string): void => {
    ifMatch = etag;
  };
  const { aliases, favorites } = await client.addressBookGet({}, { onVersion });
  try {
    await client.addressBookPut({ aliases: edit(aliases), favorites }, { ifMatch });
  } catch (error) {
    if (!(error instanceof SvcError) || error.status !== CHANGED || tries === 1) throw error;
    await changeLabels(client, edit, tries - 1);
  }
}
