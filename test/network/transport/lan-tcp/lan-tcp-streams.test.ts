/** Streams between neighbours are as those of a QUIC connection. */
import { streamCompliance } from '../quic/stream-compliance.ts';
import { channelStreams, Neighbours } from './world.ts';

streamCompliance('channels in the open', (t) => channelStreams(t, false));
streamCompliance('sealed channels', (t) => channelStreams(t, true));
streamCompliance('neighbours on one machine', (t) => Neighbours.start(t));
