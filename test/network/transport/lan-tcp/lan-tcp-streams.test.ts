/** Streams between LAN peers behave like streams of a QUIC connection. */
import { streamConformance } from '../conformance.ts';
import { connectionStreams, LanPeers } from './world.ts';

streamConformance('plain LAN TCP connections', (t, late) => connectionStreams(t, false, late?.clock));
streamConformance('sealed LAN TCP connections', (t, late) => connectionStreams(t, true, late?.clock));
streamConformance('LAN peers on one machine', (t, late) => LanPeers.start(t, late));
