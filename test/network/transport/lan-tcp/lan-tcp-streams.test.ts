/** Streams between neighbours are as those of a QUIC connection. */
import { streamConformance } from '../conformance.ts';
import { channelStreams, Neighbours } from './world.ts';

streamConformance('channels in the open', (t) => channelStreams(t, false));
streamConformance('sealed channels', (t) => channelStreams(t, true));
streamConformance('neighbours on one machine', (t) => Neighbours.start(t));
