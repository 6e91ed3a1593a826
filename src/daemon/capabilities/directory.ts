/** Publishing of the records of local agents and the node. */
import { Directory } from '../../capabilities/directory/directory.ts';
import { NewAids } from '../../foundation/identity/new-identities.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import { PublicationStore } from '../../foundation/store/publications.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Agents } from './agents.ts';

export type DirectoryParts = ReturnType<typeof buildDirectory>;

export function buildDirectory(
  { life, parts, store, node, configuration, seen }: Foundation,
  { records, resolver, outages, ownAddresses }: Network,
  { registry, identity }: Agents,
) {
  const publications = new PublicationStore(store);
  const newAids = new NewAids(parts.clock);
  const published = new Listeners<[SignedRecord]>();
  const directory = new Directory(
    { nodeAid: node.aid, nodeKey: node.key.publicKey },
    {
      network: records,
      publications,
      newAids,
      ...parts,
      identity,
      registry,
      ownAddresses,
      outages,
      seen,
      autoPublish: () => configuration.current.auto_publish,
      onPublished: (record) => published.notify(record),
    },
  );
  life.add('acting', directory);
  published.add((record) => resolver.learn(record));
  registry.onChange((change) => {
    directory
      .agentChanged(change)
      .catch((error: unknown) =>
        parts.log.warn({ aid: change.aid, err: error }, 'cannot publish a change of an agent'),
      );
  });
  life.defer(
    configuration.onChange((changed) => {
      if (changed.has('auto_publish')) directory.applyAutoPublish();
    }),
  );
  return {
    directory,
    publications,
    /** AIDs that were just created here. */
    newAids,
    /** Called for each of our records when at least one node stores it. */
    published,
  };
}
