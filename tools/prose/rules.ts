/**
 * Constructions that a native-speaking engineer would not write, each with a replacement. Each rule was measured
 * before it was added, see docs/decisions/0085.
 */
import type { PassageKind } from './passage.ts';

export interface Rule {
  readonly name: string;
  /** Matched against a passage: one blank between words, `¤` for code. */
  readonly pattern: RegExp;
  readonly hint: string;
  /** Kinds of passages that it applies to; all of them by default. */
  readonly kinds?: readonly PassageKind[];
}

/** Subjects of a conditional clause. */
const SUBJECT =
  "(?:it|the|they|he|she|an?|this|that|these|those|one|no|nobody|neither|none|both|either|each|every|all|some|several|nothing|something|another|its|their|our|there|what|who|only|not|two|more|other|others|any|anything|somebody|someone)(?![\\w'’-])";
/** Subjects that a clause about a place seldom has. */
const VAGUE_SUBJECT =
  "(?:it|they|he|no|nobody|neither|none|nothing|another|others|something|somebody|someone|one|both|there|what|who|only|not|those|that)(?![\\w'’-])";
/** Nouns that a place follows, and verbs that an indirect question follows. */
const BEFORE_PLACE =
  'address|approach|choose|reference|area|bug|bugs|case|cases|code|column|configuration|configurations|container|context|control|controls|decide|decides|describe|describes|determine|directory|environment|environments|example|examples|exactly|file|files|folder|format|formats|from|hash|here|host|hosts|idea|instance|instances|is|issue|know|knows|learn|line|list|location|locations|machine|machines|map|matter|message|mode|modes|moment|network|networks|of|on|out|page|part|path|paths|period|place|places|platforms?|point|points|port|position|problem|range|record|records|remember|remembers|row|scenario|scenarios|section|see|setup|setups|show|shows|situation|situations|spot|state|states|step|system|systems|table|test|tests|that|there|this|time|to|url|version|versions|was|window|windows|anywhere|everywhere|somewhere|about|say|says';
const AGENT =
  'agents?|nodes?|helpers?|servers?|daemons?|processes|process|relays?|neighbou?rs?|holders?|listeners?|sponsors?';

function rule(name: string, pattern: string, hint: string, kinds?: readonly PassageKind[]): Rule {
  return { name, pattern: new RegExp(pattern, 'gi'), hint, ...(kinds === undefined ? {} : { kinds }) };
}

export const RULES: readonly Rule[] = [
  rule(
    'conditional-where',
    `(?:(?<=^|[.;:—–(] ?)where ${SUBJECT}|(?<=\\b(?:\\w+(?:ed|en|ly|ing)|it|them|one|ones|none|nothing|too|only|even|also|not|and|but|or|again|away|up|down|more|less|back|as well|himself|itself|then|so|still|yet|all|no|once),? )where ${SUBJECT}|(?<!\\b(?:${BEFORE_PLACE}),? )(?<!\\b(?:how|when) (?:and|or) )\\bwhere ${VAGUE_SUBJECT})(?![^.;]*\\?)`,
    'a condition: write `if` or `when`; `where` is for places',
  ),
  rule(
    'headless-who',
    `(?:(?<=^|[.;:—–(] ?|(?<!(?-i:\\b[A-Z]\\w*)), )|\\b(?:of|for|to|from|with|by|than|in|on|at|after|before|without|against|but|as|only|all|not|that|so|because|behind|between|tell|tells|let|lets|know|knows|ask|asks) |(?<!\\bwho\\b[^.;]{0,80})\\b(?:and|or) )who(?:m)? (?!(?:am|are) (?:you|we|i)\\b)(?=\\w)(?![^.;]*\\?)`,
    'name the actor: `the caller`, `the remote node`, `a client`, `users who`',
  ),
  rule('agent-who', `\\b(?:${AGENT}),? who(?:m)?\\b(?![^.;]*\\?)`, 'a node or an agent is `it`: write `that`'),
  rule(
    'headless-what',
    `(?:(?<=^|[.;:—–(] ?|, )|\\b(?<!\\bwhat\\b[^.;]{0,80})(?:and|with|only|by|so|as|behind|against|without|before|after|that|but|or|not|beyond|like|between|in|all) |(?<!\\b(?:regardless|idea|list|summary|description|trace|profile|contents|state|details|guide|example|explanation|because|independent|aware|sense|overview|instead|irrespective|view|opposite|equivalent|parts|values|subset|copy|top)) \\b(?:of) )what (?!(?:if|to|about|kind|type|happens|happened|we|you|i)\\b)(?=\\w|¤)(?![^.;]*\\?)`,
    'name the thing: `the response`, `the queued frames`',
    ['text', 'cell', 'comment', 'message'],
  ),
  rule(
    'what-verb',
    '\\bwhat (?:comes?|came|goes|went|stands?|stood|waits?|is left|is lost|belongs?|becomes?|became|lies|counts|holds|costs|takes|asks?|of)\\b(?![^.;]*\\?)',
    'name the thing',
  ),
  rule(
    'whatever',
    '\\b(?:whoever|whomever|whosoever|however (?:many|long|often|much))\\b|\\bwhatever (?:it|they|comes?|came|is|was|else|may|he|an?|of|its|their|that|who|has|had|somebody|nobody|others?)\\b|\\bwhatever[.,;]',
    '`any`, `each`, `all`, `even if`, or name the thing',
  ),
  rule('nobody', '\\bnobody\\b|\\bsomebody\\b', 'name the actor, or write `no client`, `no peer`, `someone`'),
  rule('anew', '\\banew\\b|\\bafresh\\b', '`again`, or a verb with `re-`'),
  rule(
    'stands',
    '\\b(?:stands?|stood|standing)\\b(?!(?: |-)(?:for|out|alone|up|by|point)\\b|-in\\b| in for\\b)',
    '`is`, `is listed`, `remains`',
  ),
  rule('goes-on', '\\b(?:go|goes|went|going|gone) on\\b(?! to\\b)', '`continues`, `keeps running`'),
  rule(
    'preposition-which',
    '(?<!\\b(?:some|both|each|all|one|any|most|none|many|either|two) )\\b(?<!\\b(?:bitmask|track|summary|regardless|list|instead|because|record|idea|aware) )of which\\b(?![^.;]*\\?)|\\b(?:by|out of|behind|against|among|without) which\\b(?![^.;]*\\?)|\\b(?:of|by|in|with|against|for|to|from|on) whom\\b|\\bwhich\\b[^.;]{1,80}\\b(?:for|by|in|from|to|at|on|with|over|after) which\\b',
    'split the sentence, or move the preposition: `the port it listens on`',
  ),
  rule(
    'such',
    '\\b(?:none|all|of|many|few|two) such\\b(?! as\\b)|\\bsuch (?:things?|ones?|are|is|was|were)\\b|\\bthere (?:is|was|are) no such\\b|\\bno such \\w+ here\\b|(?<!\\bas )\\bsuch[.,;:]',
    '`Not found`, `this`, `these`',
  ),
  rule(
    'lets-go',
    '\\blet(?:s|ting)?(?: \\w+){0,4} go\\b|\\blet (?:pass|stand)\\b|\\blet(?:s|ting)?(?: (?!pass\\b)\\w+){0,3} in\\b',
    '`release`, `drop`, `close`, `decline`, `allow`',
  ),
  rule(
    'history',
    '\\b(?:(?:since|from) version|in former times|formerly|in earlier versions|until version)\\b',
    'explain the present state; history is in the version control',
    ['comment'],
  ),
  rule(
    'any-more',
    '\\bany more(?= ?[.,;:)]|$| (?:and|but|where|when|if|than|by|is|are|in|on|at|for|to)\\b)|\\bno more(?= ?[.,;:)]|$| (?:and|but|where|when|if|by|is|are)\\b)|\\bnothing more\\b',
    '`no longer`, or say the state: `closed`',
  ),
  rule(
    'of-its-own',
    "\\b(?:one|two|some|none|any|all|those|each|many|most) of (?:ours|mine|its own|their own|his|theirs|yours)\\b|\\bof (?:its|their|our|his|one's|my) own\\b|\\b(?:of|not) (?:ours|theirs)\\b|\\b(?:ours|theirs),",
    '`its own X`, `a separate X`, `an X of this node`',
  ),
  rule(
    'so-many',
    '\\bso (?:many|long|often|few|soon|much|little)\\b(?! (?:more|better|easier))',
    'give the number or the bound: `up to 64 streams`, `while`, `for at most 30 seconds`',
  ),
  rule('gendered', '\\b(?:he|him|his|himself|she|her|hers|herself)\\b(?!/)(?<!/her)', 'a node or an agent is `it`'),
  rule('besides', '\\bbesides?\\b', '`in addition to`, `also`, `next to`, `except`'),
  rule(
    'comes-in',
    '\\b(?:come|comes|came) (?:in|into|by|of|along|behind|beside|again|to|before|after|soon|late|too|then|upon|here|near|about|at once)\\b(?! (?:existence|being|play|\\w+ing)\\b)',
    'the verb of the field: `arrives`, `is received`, `joins`, `follows`, `returns`',
  ),
  rule(
    'is-gone',
    '\\b(?:has|have|had|is|are|was|were|be|been|being) (?:gone|ended|come)\\b|\\bgone away\\b',
    '`closed`, `stopped`, `expired`, `removed`, `arrived`',
  ),
  rule(
    'said',
    '\\b(?:is|are|was|were|be|been|being|it|as|what|whatever|and|or|has|have) said\\b|\\b(?:say|says|said) (?:so|of|it|nothing|no|how|what|who|which|whether|why|where|when|as|for|themselves|itself)\\b|\\bsaying (?:so|what|who|which|why|how|it|nothing)\\b|\\bunsaid\\b',
    '`reports`, `states`, `describes`, `shows`, `means`',
  ),
  rule(
    'makes-known',
    '\\b(?:make|makes|made|making)(?: \\w+){0,3} known\\b|\\b(?:know|knows|knew|known|hear|hears|heard|learns?|learned|learnt) of\\b|\\bnews of\\b|\\bto hear\\b',
    '`announces`, `publishes`, `knows`, `learns`',
  ),
  rule(
    'at-once',
    '(?<!\\b(?:all|open|read|several|many|multiple|more than one|two|both|run|alive|bytes|connections|fields|files|filters|frames|messages|nodes|operations|paths|peers|queries|requests|streams) )\\bat once\\b|\\bright then\\b|\\bstraight away\\b',
    '`immediately`, `at the same time`, `concurrently`',
  ),
  rule('meantime', '\\b(?:meantime|in the meanwhile|all the while|the while)\\b', '`meanwhile`, `until then`'),
  rule(
    'whose',
    '\\bwhose\\b[^.;]*\\b(?:whose|who|whom)\\b|(?:(?<=^|[.;:(] ?)|\\b(?:of|for|that|and|or|by|to|with|knows?|says?|tells?|the one|the ones|those|one|all) )whose\\b(?![^.;]*\\?)',
    '`with`, `that has`, or two sentences',
  ),
  rule(
    'in-a-row',
    '\\bin a row\\b|\\bone after (?:the other|another)\\b|\\bby and by\\b|\\blittle by little\\b',
    '`consecutive`, `in sequence`, `N times`',
  ),
  rule(
    'the-like',
    '\\b(?:the like|and such|the same goes|all the same|just so|in no way|in every way)\\b',
    '`similar`, `also`, or name them',
  ),
  rule(
    'archaic',
    '\\b(?:thereof|therein|thereby|therefrom|thereupon|whereby|wherein|whereof|whereupon|hereby|herein|hereof|thence|whence|hither|henceforth|albeit|ere|amid|nought|naught|aught|(?-i:shall)(?! be (?:dual|included))|unto|withal|save for|in vain|at last|for ever|so to speak|as it were|for good|sooner or later|bereft|aside|mend|mends|mended|mending|quicker|quickest)\\b(?<!\\bset aside)',
    'plain words: `so`, `until`, `must`, `fix`, `faster`, `permanently`, `on another node`',
  ),
  rule(
    'be-it',
    '\\b(?:and |or |, ?)be (?:it|they|he)\\b|\\bno matter (?:who|what|which|where)\\b',
    '`even if`, `whether … or`',
  ),
  rule('has-to', '\\bhas to\\b(?<!\\b(?:what|it) has to)(?! do with\\b)', '`must`, `needs to`'),
  rule(
    'not-before',
    '\\bnot (?:before|sooner|earlier|later|oftener)\\b|\\bno (?:sooner|earlier|later|oftener)\\b|\\bnever (?:sooner|earlier)\\b',
    'put it positively: `only after`, `at most`',
  ),
  rule(
    'only-then',
    '\\b(?:only|also|even|but|except|too|just|not|and) where\\b|\\b(?:too|just|also) there\\b|\\b(?:not|only) so\\b(?! (?:much|many|that|far|long))|\\bonly then\\b|\\b(?:then|there) too\\b',
    '`only if`, `only after X`',
  ),
  rule(
    'of-them',
    '\\b(?:each|none|any|several|two|three|few|which|what|more|much|half|part|many|most) of (?:them|it)\\b|\\ball of it\\b|\\b(?:one|none|much|nothing|what|part) of this\\b|\\b(?:nothing|something|anything) of\\b',
    'name them: `each peer`, `no frame`',
  ),
  rule(
    'the-one',
    '\\bthe ones? (?:which|who|of|whose|in|on|for|before|after|here|there|it|they)\\b|\\bthe one\\b(?=[^.;]*\\bthe other\\b)|(?<!-)\\bthe one that\\b|\\bthose (?:of|that)\\b|\\bthat which\\b|\\ball that\\b|\\ball of that\\b|\\bthe others\\b',
    'repeat the noun',
  ),
  rule(
    'from-then-on',
    '\\b(?:from (?:then|now|there|here|that|this|\\w+ (?:moment|time|day)|its \\w+|the \\w+) on)(?! (?:the|an?|port|its)\\b)\\b|\\bever after\\b|\\bas of now\\b',
    '`after that`, `later`',
  ),
  rule(
    'gives-way',
    '\\b(?:give|gives|giving|gave|given) (?:way|up on|notice)\\b|\\bmakes? room\\b|\\bmade room\\b',
    '`is evicted`, `yields`, `is replaced by`',
  ),
  rule(
    'holds',
    '\\b(?:hold|holds|held) (?:good|of|only|where|there|here|too|against|what|if)\\b|\\b(?:do|does|did|what|it|that|which|this) (?:not )?holds?\\b(?= ?[.,;:]|$)|\\bdoes not hold\\b',
    '`is valid`, `applies`, `invalid`',
  ),
  rule(
    'stays',
    '\\b(?:stay|stays|stayed|staying) (?:out|away|so|as|what|behind|where|there|of|by|with|whole|empty|free)\\b',
    '`remains`, `is kept`, `is not included`',
  ),
  rule('lies', '\\b(?:lie|lies|lay|lain|lying|laid)\\b(?! out)', '`is`, `is stored`'),
  rule('serves', '\\bserv(?:e|es|ed) (?:for|nobody|nothing)\\b', '`is used for`'),
  rule(
    'asked',
    '\\b(?:is|are|was|were|been|being|when|as|if|once|not|and|never|nobody) asked\\b|\\basks for\\b|\\basks? (?:it|them|each|another|others?|one|no|a (?:node|peer|helper|relay|server)|the (?:node|nodes|other|others|network|daemon|system|kernel|peer|same|helper))\\b|\\bunasked\\b',
    '`requests`, `queries`, `sends a request to`',
  ),
  rule(
    'told',
    '\\b(?:is|are|was|were|be|been|being|has|have) told\\b|\\btells? (?:of|apart|from|nobody|nothing|what|who|how|others?)\\b|\\btells (?:it|them|an?)\\b',
    '`notifies`, `reports`, `identifies`, `shows`',
  ),
  rule(
    'becomes-of',
    '\\b(?:become|becomes|became) of\\b|\\b(?:is|are|was|were) made (?:of|from)\\b|\\bleft (?:out|over|alone)\\b|\\b(?:nothing|none|one|all|that|more|time|room|space) (?:is|are|was|were) left\\b|\\bleav(?:e|es) (?:out|over|alone)\\b',
    '`optional`, `omitted`, `remaining`, `consists of`',
  ),
  rule('by-itself', '\\b(?:by|of) (?:itself|themselves|oneself|ourselves|himself)\\b', '`automatically`, `alone`'),
  rule(
    'takes',
    '\\b(?:take|takes|took|taken|taking) (?:no|them|what|in|away|along|back|only|nothing|for|the place|its place|the method|this method)\\b|\\btakes (?:it|that|this|as|to|up|from|by)\\b',
    '`accepts`, `receives`, `removes`, `uses`, `requires`',
  ),
  rule(
    'inversion',
    '^(?:To|From|In|On|At|Behind|Beside|With|Of|By|Against|Through|Over) [^,.;:]{1,40}? (?:goes|comes|stands|lies|belongs|counts|helps)\\b|(?:^|[.;] )(?:Nor|Never|Only) (?:is|are|do|does|did|can|has|have|may|then)\\b|(?:^|[.;:] )So (?:is|are|do|does|did|can|has|have|may|it is|they are)\\b|\\bas (?:is|are|do|does|did|has) (?:the|a|an|all|every|one)\\b',
    'subject, verb, object',
  ),
  rule(
    'so-is',
    '\\b(?:is|are|was|were|be|stay|stays|remains?) so\\b(?= ?[.,;:]|$| (?:for|where|when|if|in|with|by|to)\\b)',
    'name the state or the action',
  ),
  rule(
    'sooner',
    '\\b(?:the sooner|how soon|for long|for the longest|long since|the longest time)\\b|\\bsoon after(?:wards)?\\b',
    'give the time: `within 2 s`, `after a timeout`',
  ),
  rule('repeated-word', '\\b(?!(?:that|had|very|long|blah)\\b)(?-i:([a-z]{2,}) \\1)\\b', 'a word twice'),
];
