/** `svc invite`, `svc join`, `svc contacts`: coming into a network. */
import type { InvitationReach, MeetingState } from '../../../foundation/domain/joining.ts';
import { counted } from '../../../foundation/plain-words.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { PAGE, pageRemark } from '../takes.ts';
import { formatTable } from '../text.ts';

/** Who can use an invitation, and what to do where that is not everybody. */
const REACH: Readonly<Record<InvitationReach, string>> = {
  anywhere: 'Anybody can use it: strangers reach this node.',
  helped: 'Anybody can use it: strangers do not reach this node, but they come in by other nodes that it names.',
  unproven:
    'Nobody has reached this node from outside yet. Open the UDP ports of listen_addr and quic_listen_addr where others cannot join.',
  lan: 'Only machines of your own network can use it: this node knows no address that strangers reach. Open the UDP ports of listen_addr and quic_listen_addr in your router and set fallback_host to its public address, or run svcd on a machine with a public address and invite from there.',
  machine: 'Only this machine can use it: this node listens on loopback. Let listen_addr name no loopback address.',
};

const STATES: Readonly<Record<MeetingState, string>> = {
  untried: 'not tried yet',
  unresolved: 'its name has no address',
  ipv6: 'has no IPv4 address',
  silent: 'does not answer',
  other_key: 'another node answers there',
  met: 'met',
};

function networkText(network: string): string {
  return network === '' ? 'the network' : `the network "${network}"`;
}

export function joiningCommands(svc: CommandGroup): void {
  svc.call('invite', 'print a line by which another machine comes into this network', {
    examples: ['svc invite', "svc join 'svc://aid1…/join/…'   # on the other machine"],
    operation: 'invite',
    text: ({ invitation }) => invitation,
    quiet: ({ invitation }) => invitation,
    remark: ({ reach, contacts, network }) =>
      [
        `Type on the other machine: svc join '<this line>'`,
        REACH[reach],
        `It gives away the key of this node, ${network === '' ? '' : `the name "${network}" of the network, `}and these addresses: ${contacts.map((contact) => contact.split('@').at(-1)).join(', ')}.`,
      ].join('\n'),
  });
  svc.call('join <to>', 'come into the network of another machine, by the line of its "svc invite" or by its address', {
    examples: ["svc join 'svc://aid1…/join/…'", 'svc join node.example.org', 'svc join aid1…@203.0.113.7:4121'],
    operation: 'join',
    progress: 'Joining',
    text: ({ network, by, dht_peers, network_ready }) =>
      network_ready
        ? `This node is in ${networkText(network)}: ${counted(dht_peers, 'peer')}, by ${by}.`
        : `${by} answers. It is kept, and ${networkText(network)} is still being joined: see "svc status".`,
    quiet: ({ by }) => by,
  });
  const contacts = svc.group(
    'contacts',
    'nodes by which this one comes into its network',
    ['svc contacts', 'svc contacts forget node.example.org:4121'],
    {
      takes: PAGE,
      run: ({ client }, page): Promise<AnswerOf<'contacts'>> => client.contacts(page),
      remark: (page) => pageRemark(page),
      watch: true,
      text: (answer) =>
        formatTable(
          ['CONTACT', 'FROM', 'LAST TIME'],
          answer.contacts.map(({ contact, joined, state }) => [
            contact,
            joined ? 'svc join' : 'bootstrap',
            STATES[state],
          ]),
          'No contacts. Ask the owner of a node for the line that "svc invite" prints there, and "svc join" it.',
        ),
      quiet: (answer) => answer.contacts.map(({ contact }) => contact).join('\n'),
    },
  );
  contacts.call('forget <contact>', 'take back a "svc join"', {
    operation: 'contactForget',
    text: () => 'The contact is forgotten.',
    quiet: (_, { contact }) => contact,
  });
}
