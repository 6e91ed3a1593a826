/** English words of questions: words that describe no tool, and groups of words with the same meaning. */

/** Words that describe no tool. */
const IGNORED = new Set(
  (
    'a above after again all also am an and any anyone anything are as at be because been before being but by ' +
    'can cannot could did do does doing done down during each else even ever every few for from further give go going ' +
    'got had has have having help here how i if in into is it its itself just kind let like likes ' +
    'look looks me mine more most must my myself need needs no nor not now of off on once one only or other our ' +
    'ours out own per please quickly quite rather really s same should so some someone something soon ' +
    'still such sure t than that the their them then there these they thing things this those through to too ' +
    'under until up us use using very via want wants was way we were what whats when while whom whose ' +
    'why will with within without would yet you your yours'
  ).split(' '),
);

/** Words with one meaning for tools. The first word of a group has no special role. */
const GROUPS = [
  'create add new make open file start register insert set put enter write prepare draft',
  'delete remove erase drop discard clear trash rid destroy throw',
  'cancel abort revoke withdraw call off',
  'list show display enumerate browse all every overview which',
  'get fetch read retrieve show return lookup view see',
  'find search query locate hunt seek look where about',
  'update change edit modify adjust alter set correct fix patch replace',
  'send deliver forward dispatch submit tell pass mail',
  'reply answer respond',
  'move relocate transfer shift',
  'copy duplicate clone',
  'rename retitle title call name',
  'close finish complete resolve done tick check',
  'reopen restore undo recover revert back',
  'archive file store',
  'start begin run launch execute trigger kick spin',
  'stop end halt pause kill',
  'restart reboot reload',
  'schedule book plan arrange reserve appointment reservation',
  'reschedule postpone move delay push later snooze',
  'extend renew prolong longer another',
  'invite attendee guest participant join',
  'accept yes confirm agree approve',
  'decline no reject refuse',
  'share permission access collaborator grant',
  'download export save',
  'upload import attach attachment put',
  'import load save clip',
  'compare diff difference versus',
  'summarize summary overview digest gist recap',
  'translate translation language',
  'convert conversion turn transform',
  'calculate compute count work',
  'count number many total amount',
  'much price cost amount total balance value',
  'sum total amount',
  'average mean statistics',
  'analyze analysis statistics insight report',
  'remaining left rest available',
  'mail email message inbox letter newsletter mailbox',
  'message chat text dm post write say tell',
  'direct private dm',
  'channel room group',
  'history recent past earlier yesterday read',
  'unread new unseen',
  'meeting event appointment call calendar meet party standup',
  'calendar agenda diary schedule event appointment',
  'appointment dentist doctor hairdresser',
  'recurring repeat every weekly daily monthly weekday regularly',
  'free available availability busy slot open',
  'automatic automatically auto',
  'vacation out office absence away',
  'task todo reminder chore errand',
  'remind reminder alert notify',
  'notify notification alert ping',
  'issue bug ticket problem defect',
  'bug defect broken error',
  'ticket request case incident',
  'assign assignee owner responsible give',
  'comment remark note reply',
  'label tag category mark',
  'priority urgent important',
  'due deadline overdue late',
  'code source',
  'repository repo project codebase',
  'commit change revision history',
  'branch merge pull',
  'pull request merge review pr',
  'pipeline build workflow ci job',
  'sprint board backlog',
  'deploy release rollout ship publish',
  'previous back earlier',
  'log logs output trace',
  'error failure crash exception broken fail',
  'test tests testing covered coverage',
  'metric metrics usage load chart',
  'threshold above below exceed',
  'file document doc',
  'folder directory',
  'drive storage cloud disk',
  'space free storage',
  'page article wiki document',
  'note notes memo jot',
  'append add bottom',
  'photo picture image photograph snapshot',
  'picture image drawing graphic illustration',
  'video clip movie film recording',
  'movie film cinema title',
  'music song track tune',
  'song track tune',
  'playlist queue',
  'play listen hear',
  'volume loud quiet louder quieter up down',
  'podcast episode show',
  'weather forecast temperature rain sunny snow umbrella climate outside',
  'current now today present conditions',
  'rain precipitation umbrella',
  'warm cold hot temperature degrees heating',
  'wind gust storm',
  'air pollution quality',
  'sunset sunrise sun',
  'tide tides sea ocean',
  'past historical history was ago',
  'map maps location place',
  'route directions drive way path navigation',
  'distance far long',
  'address street geocode coordinates latitude longitude',
  'near nearby close around here',
  'traffic congestion jam',
  'train rail railway',
  'connection connections trip journey',
  'bus tram transit transport departure',
  'departure depart leave leaves next',
  'ticket fare seat',
  'flight fly plane airline airport',
  'baggage luggage bag suitcase',
  'hotel stay night nights accommodation lodging room guest',
  'trip journey travel itinerary vacation holiday',
  'car vehicle',
  'restaurant eat dinner lunch food cuisine',
  'food dish meal pizza sushi burger pasta dishes',
  'delivery courier bring home',
  'recipe cook dish meal bake',
  'ingredient ingredients fridge eggs flour',
  'substitute replacement instead alternative',
  'servings people guests portions',
  'calorie calories nutrition diet',
  'shopping groceries grocery shop',
  'buy purchase order',
  'order purchase',
  'product item article goods clothes shoes',
  'price cost quote much worth',
  'cheap cheapest lowest cheaper discount',
  'under below max maximum less',
  'cart basket',
  'return send back exchange fit',
  'refund reimburse money back compensation',
  'shipment parcel package delivery shipping',
  'track tracking status where',
  'status state progress',
  'stock inventory warehouse',
  'invoice bill owe charge',
  'unpaid open outstanding owe overdue due',
  'payment pay paid charge',
  'expense spending spend receipt cost',
  'profit earnings income revenue loss',
  'revenue income sales turnover',
  'budget spending',
  'balance account money',
  'account bank',
  'transaction payment transfer',
  'transfer send wire transfer pay',
  'card debit credit',
  'share stock equity ticker',
  'portfolio holdings investments',
  'currency exchange dollar euro rate',
  'crypto bitcoin coin token',
  'tax taxes vat',
  'customer client contact account',
  'contact person people',
  'lead prospect deal opportunity',
  'pipeline funnel forecast',
  'satisfaction satisfied happy',
  'employee staff colleague coworker',
  'vacation leave holiday off absence time',
  'sick ill illness',
  'salary payroll payslip pay',
  'job position vacancy opening',
  'candidate applicant',
  'user account member',
  'password credential secret login',
  'role permission right',
  'login sign session',
  'database db table sql',
  'table schema columns',
  'row record entry',
  'query sql select ask',
  'slow slowest slowly longest long',
  'backup snapshot copy dump',
  'server machine host instance vm virtual',
  'memory ram size bigger',
  'container docker pod',
  'scale replicas instances',
  'domain dns hostname',
  'certificate tls ssl',
  'expire expiry expires valid',
  'ip address network',
  'website site page web url homepage',
  'web internet online',
  'screenshot picture capture',
  'speed performance slow fast load',
  'news headline article story',
  'paper papers study publication research article',
  'book novel read title',
  'loan borrow borrowed',
  'availability available shelf now',
  'author writer wrote written',
  'definition define meaning mean',
  'word term vocabulary',
  'language english german french spanish polish italian',
  'synonym thesaurus similar',
  'grammar spelling proofread',
  'speech voice speak spoken aloud audio recording',
  'transcribe transcript transcription written write down',
  'light lights lamp bulb brightness dim',
  'thermostat heating heat temperature warm',
  'door lock locked unlock',
  'camera footage',
  'sensor reading measure',
  'device appliance gadget lamp light tv',
  'vacuum robot clean',
  'turn switch toggle',
  'exercise workout training run sport',
  'sleep slept night',
  'weight weigh kilograms kilos kg pounds',
  'record log note',
  'heart pulse rate',
  'medication medicine drug pill',
  'doctor clinic physician dentist',
  'patient patients',
  'symptom symptoms',
  'game match score',
  'team club',
  'league standings table',
  'player athlete',
  'course class lesson lecture',
  'assignment homework exercise',
  'student pupil',
  'grade mark score',
  'quiz test exam',
  'flashcard card deck',
  'time clock hour zone',
  'day today tomorrow now current',
  'forecast tomorrow weekend coming',
  'week weekly days',
  'random dice roll',
  'pdf document',
  'slide slides presentation deck',
  'spreadsheet sheet cells',
  'cell range',
  'chart graph plot diagram',
  'form survey questionnaire',
  'response answer submission',
  'poll vote voting',
  'person people grandma grandpa mother father friend child',
  'reviews review opinion rating think',
  'plant plants garden',
  'contract agreement lease rental',
  'property house flat apartment home',
  'rent rental lease',
  'energy electricity power consumption',
  'charge charging battery',
  'webhook hook',
  'feature flag toggle',
  'dependency dependencies package library',
  'vulnerability security cve',
  'version release',
  'latest newest recent last',
  'popular top trending best',
  'similar related recommend recommendation suggest',
  'watch follow subscribe',
  'unfollow unsubscribe stop',
  'spam junk',
  'block ban mute',
  'silence mute quiet',
  'star favorite bookmark like save',
  'big large size',
  'crop trim cut',
  'resize scale smaller shrink',
  'background backdrop',
  'color colour',
  'generate render draw',
  'rule filter sort',
  'conditions rules',
  'pets pet dog dogs cat cats animals',
  'vegan vegetarian plant-based',
  'allergens allergy nuts gluten lactose',
  'on-call duty shift',
  'resolver resolvers propagation',
  'maintenance drain empty',
  'pollen hay fever birch',
  'parking park garage',
].map((group) => group.split(' '));

/** A rough stem, only to find a word in the groups. The index has its own stemmer. */
function stem(word: string): string {
  for (const [ending, put] of [
    ['ies', 'y'],
    ['ing', ''],
    ['ed', ''],
    ['es', ''],
    ['s', ''],
    ['e', ''],
  ] as const)
    if (word.endsWith(ending) && word.length - ending.length >= 3) return word.slice(0, -ending.length) + put;
  return word;
}

const BY_STEM = new Map<string, Set<string>>();
for (const group of GROUPS)
  for (const word of group) {
    const others = BY_STEM.get(stem(word)) ?? new Set<string>();
    for (const other of group) if (other !== word) others.add(other);
    BY_STEM.set(stem(word), others);
  }

/** The rough stems of the words in a text. */
export function stemsIn(text: string): string[] {
  return wordsIn(text).map(stem);
}

/** One word of a question, and other words for it. */
export interface Concept {
  readonly word: string;
  readonly others: readonly string[];
}

/** Words of a question that are searched. */
const MAX_CONCEPTS = 24;
/** Limit of all searched words, including words with the same meaning. Each may match the whole catalog. */
const MAX_LOOKUPS = 128;

/** The words of a text. An address counts as the word "url", and numbers as nothing. */
function wordsIn(text: string): string[] {
  const plain = text
    .toLowerCase()
    .replaceAll(/\bhttps?:\/\/\S+/g, ' url ')
    .replaceAll(/['’]/g, '');
  return (plain.match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => /\p{L}/u.test(word));
}

function conceptOf(word: string): Concept {
  return { word, others: [...(BY_STEM.get(stem(word)) ?? [])] };
}

/** All words of a text, in order. */
export function everyWord(text: string): Concept[] {
  return wordsIn(text).slice(0, MAX_CONCEPTS).map(conceptOf);
}

/** The words of a question that describe a tool. */
export function conceptsIn(text: string): Concept[] {
  const words = [...new Set(wordsIn(text))];
  const telling = words.filter((word) => !IGNORED.has(word));
  // A question without other words is searched as it is.
  const chosen = (telling.length > 0 ? telling : words).slice(0, MAX_CONCEPTS);
  let left = MAX_LOOKUPS - chosen.length;
  return chosen.map(conceptOf).map(({ word, others }) => {
    const some = others.slice(0, left);
    left -= some.length;
    return { word, others: some };
  });
}

/** First words of questions that ask for information. */
const ASKING =
  /^(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|am|do|does|did|has|have|can|could|will|would|may|any|anything|show|list|find|give me|tell me|look)\b/;
const READING =
  /\b(?:get|fetch|read|show|list|find|search|query|check|lookup|look up|describe|compare|track|view|estimate|calculate)\b/;
const REMOVING =
  /\b(?:delete|remove|drop|cancel|revoke|kill|block|disable|reject|destroy|unsubscribe|archive|leave|stop|pause)\b/;
const REMOVING_WORDS =
  /\b(?:delet|remov|drop|cancel|revok|kill|block|disabl|reject|destroy|unsubscrib|archiv|stop|paus|rid|off|erase|lost|stolen|clear|quit|leave|can'?t)/;

/** Weight of a tool that reads, for a question, and the inverse for a request. */
const READS = 1.15;
/** Weight of a tool that removes or stops something, if the text does not mention that. */
const REMOVES = 0.6;

/** Weighs tools by their name: a question wants a tool that reads, and only a clear request one that removes. */
export function intentOf(text: string): (name: string) => number {
  const words = text.toLowerCase();
  const asks = ASKING.test(words) || words.trim().endsWith('?');
  const removes = REMOVING_WORDS.test(words);
  return (name) => (READING.test(name) === asks ? READS : 1) * (REMOVING.test(name) && !removes ? REMOVES : 1);
}
