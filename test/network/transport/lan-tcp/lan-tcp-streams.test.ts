/** Streams between LAN peers behave like streams of a QUIC connection. */
import { streamConformance } from '../conformance.ts';
import { connectionStreams, LanPeers } from './world.ts';

streamConformance('plain LAN TCP connections', (t) => connectionStreams(t, false));
streamConformance('sealed LAN TCP connections', (t) => connectionStreams(t, true));
streamConformance('LAN peers on one machine', (t) => LanPeers.start(t));
