#include "store/answers/language_internal.h"

#include "store/bytes.h"

#include <strings.h>

/* Each list: function words, question words, greetings, and parts of words cut at apostrophes. */
static const char stop_en[] =
    "a about afternoon all also am an and any are aren as at be because been being but by can "
    "cannot cheers could couldn d dear did didn do does doesn doing don done each evening ever "
    "few for from good guys had hadn has hasn have haven having he hello her here hers hey hi "
    "him his how i if in into is isn it its just kindly ll m may maybe me might more morning "
    "most much must my myself no nor not of off ok okay on one only or other our ours out over "
    "own please pls re s shall she should shouldn so some sorry such t than thank thanks that "
    "the their theirs them then there these they this those though through to too under until up "
    "upon us ve very was wasn we were weren what when where which while who whom whose why will "
    "with won would wouldn yes yet you your yours";
static const char light_en[] =
    "able absolutely actually add afraid after again ago allow allowed already always another "
    "answer anybody anyone anything anyway anywhere appear around arrive ask aunt available away "
    "back basically become before begin believe best better between big bit bought boyfriend "
    "bring brother buddy buy call came case cause certain cheap check choose clear clearly "
    "colleague come complete concern confirm consider continue correct cost couple currently dad "
    "daughter day deal decide depend details difference different doubt during easy eight else "
    "end enough entire especially etc eventually everybody everyone everything everywhere exact "
    "exactly exist expect expensive explain extra fact family far fast father figure finally "
    "find fine first fit five folks found four friend friends full general generally get "
    "girlfriend give given glad go going gone got granddaughter grandma grandpa grandson great "
    "guess guy half happen happy hard hear heard help herself himself hope hour however husband "
    "idea important including info information inside instead interested issue item itself keep "
    "kid kind know lady last late later least leave left less let like little live long longer "
    "look lot lots love lucky made main make man many matter mean meant men mention mine minute "
    "mom moment month mother mum near nearly necessary need neither nephew never new next niece "
    "nine nobody none normally note nothing now nowhere number obviously offer often old once "
    "open option order ordered otherwise ourselves parents partner people per perhaps person "
    "piece place plan plus point possible possibly prefer price probably problem product provide "
    "purpose put question quick quickly quite range rather ready really reason recently "
    "recommend regard regarding related relative remember require rest right run same say second "
    "see seem seems self sell send sent seven several shop show side simple simply since single "
    "sister site six size small somebody somehow someone something sometimes somewhere son soon "
    "sort special specific start state still stock stop store straight suggest suitable supposed "
    "sure take team tell ten themselves therefore thing think thinking third thought three time "
    "times today together told tomorrow tonight took total totally towards trouble try turn two "
    "type uncle understand unless use used useful usual usually various view wait want wanted "
    "way ways week weekend well went whatever whenever wherever whether whole wife wish without "
    "woman women wonder wondering word work works worry worth write wrong wrote year yesterday "
    "young yourself zero";

static const char stop_de[] =
    "abend aber ach alle allem allen aller allerdings alles als also am an andere anderen "
    "anstatt auch auf aus ausser ausserdem b bald bei beim bereits besonders bevor bezuglich bin "
    "bis bisher bist bitte bzw ciao da dabei dafur daher dahin damen damit dank danke dann daran "
    "darauf daraus darf darfst darin daruber darum darunter das dass dasselbe davon davor dazu "
    "dein deine deinem deinen deiner deines dem demnach den denen denn dennoch der deren "
    "derselbe des deshalb dessen desto deswegen dich die diejenigen dies diese dieselbe diesem "
    "diesen dieser dieses dir doch dort dran drauf draussen drin drinnen druber du durch durfen "
    "durft durfte durften eben ebenfalls ebenso eher eigentlich ein eine einem einen einer eines "
    "einige einigem einigen einiger einiges einschliesslich entschuldigen entschuldigung "
    "entweder er es etwa etwas euch euer eure eurem euren eurer eures evtl falls fast ferner "
    "folglich frau freundliche freundlichen fur gar geehrte geehrten geehrter gegen gegenuber "
    "gehabt gemass genauso gern gerne gewesen geworden ggf gibt grusse grussgott guten hab habe "
    "haben habt hallo hallochen halt hast hat hatte hatten hattest hattet heraus herein herr "
    "herren hey hi hier hierfur hierzu hin hinaus hinein hinter ich ihm ihn ihnen ihr ihre ihrem "
    "ihren ihrer ihres im in indem ins irgendein irgendeine irgendwann irgendwas irgendwie "
    "irgendwo ist ja je jede jedem jeden jeder jedes jedoch jemand jemandem jemanden jene jenen "
    "jener jenes jetzt kann kannst kaum kein keine keinem keinen keiner konnen konnt konnte "
    "konnten konntest leute lg liebe lieber liebes mal man manche manchen mancher manches "
    "manchmal mein meine meinem meinen meiner meines meist meistens mfg mich mir mit miteinander "
    "mochte mochtest mochtet moin morgen muss mussen musst musste mussten musstest musstet nach "
    "nachdem nachher naturlich neben nebenbei nein nicht nichts nie niemals niemand nirgends "
    "nirgendwo noch nun nur ob obwohl oder ohne ohnehin per pro samt schon sehr sei seid seien "
    "sein seine seinem seinen seiner seines seit selber selbst servus sich sie sind so sobald "
    "sofern sogar solange solch solche solchen solcher solches soll sollen sollt sollte sollten "
    "solltest solltet somit sondern sonst sorry sowie sowieso sowohl statt tag trotz trotzdem "
    "tschuss uber uberhaupt ubrigens um ums umso und uns unser unsere unserem unseren unserer "
    "unseres unter usw vg vielen vom von vor voraus vorbei vorher wahrend wann war ware waren "
    "warest warst wart warum was weder wegen weil weiter weiterhin welche welchem welchen "
    "welcher welches wem wen wenn wer werde werden werdet weshalb wessen wie wieso wieviel will "
    "willst wir wird wirst wo wofur woher wohin wohl wollt wollte wollten wolltest wolltet womit "
    "worauf woraus worden worin woruber wovon wozu wurde wurden wurdest wurdet z ziemlich zu "
    "zudem zuerst zum zumindest zunachst zur zusammen zwar zwischen";
static const char light_de[] =
    "achten ahnlich aktuell akzeptieren allein anbieten anderer anderes andern anders anfangen "
    "anfragen angeben angebot anschauen ansehen antwort antworten arbeiten art arten artikel "
    "aufhoren auskunft aussehen beachten beantworten bedeuten bedeutet beginnen behalten beide "
    "beiden bekannt bekomme bekommen bekommt benotigen benotigt benutzen benutzt bereit "
    "berichten besitzen besondere besser beste bestelle bestellen bestellt bestellung besten "
    "bestens bester bestes bieten bietet blei bleiben bleibt brauch brauche brauchen braucht "
    "bringen bruder danken dauern dauert denken ding dinge direkt drei dringend egal eigen "
    "eigene eigenen eigener einfach einfacher einmal eins einzeln einzelne einzelner empfehlen "
    "empfehlt ende enkel enkelin erfahren erhalt erhalte erhalten erhaltlich erklaren erlaubt "
    "erst erste ersten erster erstes erwarten euro extra fall falle falsch familie fehlen fehlt "
    "fertig finde finden findet frage fragen fragt frei freuen freund freunde freundin fruh "
    "fruher fuhren fuhrt funf funktionieren funktioniert ganz ganze ganzen ganzer ganzes gebe "
    "geben gebt geeignet gefallen gefallt gefunden gegeben gehen gehore gehoren gehort geht "
    "gekauft gelten genau genug gerade geraten gesamt geschaft gesehen gestern gibts gilt "
    "glauben gleich gleiche gleichen glucklich gross grosse grund gunstig gut gute guter gutes "
    "halbe halte halten haltet handeln helfen helft heute hilfe hilft hoch hoffen hohe hoher "
    "holen horen immer info information informationen infos insgesamt interesse interessieren "
    "jahr jahre jahrig jung junger kaufen kauft kenne kennen klappen klappt klar klein kleine "
    "kleinen kleiner kleines komme kommen kommt komplett konkret kosten kostet kriege kriegen "
    "kurz kurze kurzer kurzlich laden lang lange langer lasse lassen lasst legen leicht leider "
    "letzte letzten letzter letztes liegen liegt los losung machbar mache machen machst macht "
    "mag mama mann maximal mehr mindestens minute minuten mitbringen mitnehmen mitteilen mochten "
    "moglich mogliche moglichkeit moglichkeiten moment momentan monat monate montag morgens "
    "mutter nachschauen nachste nachsten nachster nah nahe name neffe nehmen nehmt nennen neu "
    "neue neuem neuen neuer neues neulich neun nichte nimm nimmt normal normalerweise notig "
    "notwendig nutzen nutzt oft oma onkel opa papa partner passen passieren passiert passt "
    "person personen preis problem probleme produkt prufen punkt raus reichen reicht rein rest "
    "richtig sache sachen sag sagen sagt schaffen schau schauen schickt schlecht schlimm schnell "
    "schone schoner schreiben schreibt schwer schwester sechs sehe sehen seht seite selten "
    "setzen shop sicher sicherlich sieben sieht sinnvoll sohn spat spater spatestens sprechen "
    "spricht standig stehen steht stelle stellen stimmt stuck stunden suche suchen sucht tage "
    "tagen tante tatsachlich team teuer tochter total treffen tun tut typ uberlegen unbedingt "
    "ungefahr unterschied unterschiedlich ursprunglich vater verfugbar vergessen verkaufen "
    "verkauft verlangen vermutlich verschieden verschiedene verstehen versuche versuchen "
    "verwendbar verwende verwenden verwendet viel viele vielleicht vier voll vollig vorhanden "
    "vorhin vorstellen wahrscheinlich warten weise weiss weisst wenig wenige weniger wichtig "
    "wieder wieviele wirklich wirkt wissen woche wochen wollen wunschen zahl zehn zeigen zeigt "
    "zeit ziel zufrieden zuruck zurzeit zwei zweite zweiten zweiter";

static const char stop_fr[] =
    "a afin ai aie ailleurs ainsi alors apres as assez au aucun aucune aupres auquel auraient "
    "aurais aurait auras aurez auriez aurions aurons auront aussi autant autour autre autres aux "
    "auxquelles auxquels avaient avais avait avance avec avez aviez avions avoir avons ayant "
    "ayez ayons bah ben bien bonjour bonne bonsoir bref c ca car ce cela celle celles celui "
    "cependant certain certaine certaines certains ces cet cette ceux chacun chacune chaque cher "
    "chere chers chez ci combien comme comment cordialement coucou d dans davantage de dedans "
    "dehors deja des desole dessous dessus devant devez devons devra devrais devrait devrez "
    "devriez devront dois doit doivent donc dont du duquel durant eh elle elles en encore entre "
    "envers environ es est et etaient etais etait etant ete etes etiez etions etre eu eue eues "
    "eumes eussent eut eutes eux excusez faire fais faisait fait faites fallait faudra faudrait "
    "faut font furent fus fussent fut futes hein helas hello hors ici il ils j jamais je journee "
    "jusqu jusqua jusque l la laquelle le lequel les lesquelles lesquels leur leurs lors lorsque "
    "lui m ma madame mais malgre me meme merci mes mesdames messieurs mien mienne miennes miens "
    "moi mon monsieur n ne neanmoins ni nombreux non nos notre nous nul o oh on ont ou oui outre "
    "par parce pardon parfois parmi pas pendant peu peut peuvent peux plait plus plutot pour "
    "pourquoi pourra pourrai pourraient pourrais pourrait pourrez pourriez pourrons pourront "
    "pouvaient pouvait pouvez pouviez pouvoir pouvons pres presque pu puis puisje puisque puisse "
    "puissiez qu quand que quel quelconque quelle quelles quelqu quelquun quels qui quoi quoique "
    "rien s sa salut sans sauf se sera serai seraient serais serait serez seriez serions serons "
    "seront ses si sien sienne siens sil soient soiree sois soit sommes son sont sous soyez stp "
    "suffit suis sur surtout svp t ta tandis tant te tel telle telles tels tes tiens toi ton "
    "toujours tous tout toute toutefois toutes tres trop tu un une vers veulent veut veux voici "
    "voila vos votre votres voudrais voudrait voudriez voudrions voulaient voulais voulez "
    "vouloir voulons vous vu vue y";
static const char light_fr[] =
    "accepter acceptez achat achete acheter achetes achetez aide aider aidez aille aime aimer "
    "aimerais alle aller allez ami amie amis an annee ans appelle arrive arriver article "
    "attendre attendu aujourd autorise avant avis beau beaucoup belle besoin bon bonnes bons "
    "bout boutique cas cause cent changer choisir chose cinq clair clairement commande commander "
    "commandes commencer comprendre compris compter conseil conseiller conseillez conseils "
    "contenir contient convenir convient correct cote coup cours court courte cout coute coutent "
    "couter dame date debut decider demain demande demander depuis dernier derniere derniers "
    "deux different differente differentes differents difficile dirait dire directement disent "
    "disponible disponibles dit dites dix donne donner donnez droit dure durent durer egalement "
    "ensemble ensuite entendre entier envie essaye essayer etage etat exact exactement exemple "
    "existe existent expliquer facile facilement facon falloir famille fausse faux femme filles "
    "fils fin finir fois fonctionne fonctionnent fonctionner fort forte frere garder genre gens "
    "grand grande grandes grandmere grandpere grands gros grosse habitude haut haute heure "
    "heures hier hui huit ideal idee important indiquer info information informations infos "
    "interesse interesser jeune jeunes joli jolie jour jours laisser libre lieu lire liste long "
    "longtemps longue longues magasin main maintenant maman maniere marche marchent marcher mari "
    "mauvais maximum meilleur meilleure mere met mettez mettre mieux minimum minute minutes mis "
    "mise moindre moins mois moment monde montrer moyen necessaire neuf neveu niece nom nombre "
    "normal normalement nouveau nouveaux nouvelle nouvelles obtenir occasion offre oncle ordre "
    "papa pareil parent parents parle parler part particulier partie partir pense penser pere "
    "personne personnes petit petite petites petits peur pire place plaisir plusieurs point pose "
    "poser possede posseder possibilite possible possibles precis precise precisement preferer "
    "premier premiere prend prendre prends prenez pret prevu principal prix probleme prochain "
    "prochaine proche produit produits propose proposent proposer proposez propre qualite quatre "
    "quelque quelques question raison rapide recevoir recherche rechercher recommander "
    "recommandez reellement regarder remettre renseignement renseignements repondre reponse "
    "reste rester retrouver reussir sais sait savez savoir second seconde semaine semaines "
    "semble sembler sens sept sert servir seul seule seulement simple simplement site six soeur "
    "soin sorte sortir souhaite souhaiter souhaiterais souvent suffire suffisant suite sujet "
    "tante tard temps tenir tient tot total totalement trois trouve trouver trouvez type "
    "uniquement utile utilise utiliser utilisez va vais valoir vaut vend vendez vendre vendu "
    "vendus venez venir vie vient vite vivre voie voir vois voisin voit vrai vraiment zero";

static const char stop_es[] =
    "a acaso adelante ademas adonde ah ahi ajena ajeno al algo alguien algun alguna algunas "
    "alguno algunos alla ante apenas aquel aquella aquellas aquello aquellos aqui arriba asi "
    "atras aun aunque bien buen buena buenas buenos cabe cada cierta ciertas cierto ciertos como "
    "con conmigo consigo contigo contra cordial cual cuales cuando cuanta cuantas cuanto cuantos "
    "cuya cuyas cuyo cuyos de debajo debe debeis debemos deben deberia deberian debes debo del "
    "delante demas demasiado dentro desde detras disculpad disculpe disculpen donde dos durante "
    "e echar el ella ellas ello ellos en encantaria encima enfrente entonces entre era erais "
    "eramos eran eras eres es esa esas ese eso esos esta estaba estabais estabamos estaban "
    "estabas estad estais estamos estan estar estara estaran estaras estare estareis estaremos "
    "estaria estarian estas este estimada estimado estimados esto estos estoy estuve estuvieron "
    "estuvo etc excepto favor fue fuera fuerais fueran fueras fueron fuese fui fuimos fuiste "
    "fuisteis gracias gustaria ha habeis haber habia habiais habiamos habian habias habra habran "
    "habre habria habrian hacia han has hasta hay haya hayan hayas he hemos hey hola hubiera "
    "hubieran hubo incluso jamas junto la las le les lo los luego me mediante mi mia mias "
    "mientras mio mios mis misma mismo mucho muy nada nadie ni ningun ninguna no nos nosotros "
    "nuestra nuestras nuestro nuestros o ok os otra otras otro otros oye para perdon pero poco "
    "podeis podemos podido podra podran podre podreis podria podriais podriamos podrian podrias "
    "ponerme por porfa porfavor porque primero propia propio pudo pueda puedan puede pueden "
    "puedes puedo pues puesto que quereis queremos querria querrian quien quienes quiere quieren "
    "quieres quiza quizas sabeis saludos salvo se sea seais seamos sean seas segun sendo senor "
    "senora senores ser sera seran seras sere sereis seremos seria serian serias si sido siendo "
    "sin sino so sobre sois soleis solo somos son soy su sus suya suyas suyo suyos tal tales "
    "tambien tampoco tan tanta tantas tanto tantos te tendra tendran tendreis tendria tendrian "
    "teneis tenemos tengo tenia teniais tenian tenido ti tiene tienen tienes tras traves tu tus "
    "tuve tuvo tuya tuyas tuyo tuyos u un una unas uno unos usted ustedes vaya vos vosotros "
    "vuestra vuestras vuestro vuestros y ya yo";
static const char light_es[] =
    "abuela abuelo acabar acepta aceptais aceptan aceptar adecuada adecuado ahora alta alto "
    "amiga amigo amigos anade ano anos antes aparecer aparte aprender articulo ayer ayuda "
    "ayudais ayudar ayudarme bastante bonito bueno busca buscamos buscar busco caber cara caro "
    "casi caso causa cerca cien cinco claro clase cogeis coger comenzar completa completo compra "
    "comprado comprar compre conocer conozco conseguir consejo contener contiene corta corto "
    "cosa costar creer creo cualquier cualquiera cuatro cuesta cuestan da dado dais damos dan "
    "dar darme dato datos deciis decir decirme decis deja dejais dejan dejar depende desea "
    "desear deseo despues dia diario dias dice dicen diez diferencia diferente diferentes "
    "dificil digo directamente directo disponeis disponer disponible disponibles doble dura "
    "durar ejemplo elegir embargo empezar empieza encontrado encontrar encuentra encuentro "
    "ensenar entender entero entiendo escribir especial especiales esperar espero esposa esposo "
    "estado exacta exactamente exacto existe existen explicar extra facil falta familia fecha "
    "fin final forma formas funciona funcionan funcionar general gente gran grande grandes "
    "guardar gusta gustar hablar hace haceis hacen hacer hacerlo haciendo hago hecho hermana "
    "hermano hija hijas hijo hijos hombre hora horas hoy idea ideal igual importa importante "
    "incluido incluir incluye indicar info informacion intentar interesa interesado interesar ir "
    "joven jovenes juntos lado larga largo largos leer lejos libre lista listo llama llamado "
    "llaman llega llegar lleno lleva llevan llevar llevo lugar madre mal mala malo manana manera "
    "marido mas maximo mayor media medio mejor mejores menor menos mes meses mil minimo minuto "
    "minutos mirar momento mostrar mucha muchas muchos mujer mundo naturalmente necesaria "
    "necesario necesita necesitamos necesitar necesito nieta nieto noche noches nombre normal "
    "normalmente novia novio nueva nuevas nuevo nuevos numero nunca obtener ocho ofrece ofreceis "
    "ofrecen ofrecer opcion opciones opinion padre padres pagina palabra parece parecer parte "
    "partir pasa pasado pasar paso pedido pedir pena pensar peor pequena pequeno pequenos "
    "permite permiten permitido permitir persona personas pide pido poca pocas pocos poder pone "
    "poneis ponen poner pones posibilidad posible posibles practico precio pregunta preguntar "
    "preparar presente prima primera primo principal problema problemas producto productos "
    "proxima proximo punto queda quedan quedar querer queria quiero quisiera razon real "
    "realmente recibe recibido recibir recomendais recomendar recomienda recomiendan respecto "
    "responder respuesta resto resulta sabe saben saber sacar sale salir seguir segunda segundo "
    "segura seguro seis semana semanas sentido servir siempre siete sigue simple sirve sirven "
    "sitio sobrina sobrino sola solamente solos suele suelen suficiente supuesto tarda tardais "
    "tardan tardar tarde tardes tema temprano tener tercero termino tia tiempo tienda tio tipo "
    "toda todas todo todos tomar tomo total totalmente traeis traer traigo trata tres ultima "
    "ultimo ultimos unica unico usa usan usar uso utiliza utilizar va vais vale valen valer "
    "vamos van varias vario varios vayan veces vende vendeis venden vender vendido venir veo ver "
    "verdad verme vez vieja viejo viene vienen visto vivir vivo volver voy vuelve web";

static const char stop_pt[] =
    "a acima acola adeus agora agradecia agradeco ahi alem algo alguem algum alguma algumas "
    "alguns algures ali alo ao aonde aos apenas apesar apos aquela aquelas aquele aqueles aqui "
    "aquilo as ate atras atraves bem boa boas bom bons ca caso certamente cima com comigo como "
    "conforme connosco consigo contigo contra contudo convosco cuja cujas cujo cujos "
    "cumprimentos da daquela daquelas daquele daqueles das de debaixo dela delas dele deles "
    "demais dentro depois desculpe desculpem desde dessa dessas desse desses desta destas deste "
    "destes deve devem devemos dever deveria deveriam deves devia devo diante disso disto do dos "
    "durante e eis ela elas ele eles em embora enquanto entao entre era eram eramos eras essa "
    "essas esse esses esta estamos estao estar estara estarao estaria estas estava estavam "
    "estavamos este esteja estejam estes esteve estive estiveram estivesse estou eu favor foi "
    "fomos for fora foram fosse fossem foste fui gentileza gracas ha haja hao haver havia houve "
    "houver houvera imenso inclusive ir isso isto ja jamais la lhe lhes lo logo longe mal mas me "
    "mediante menos mesma mesmas mesmo mesmos meu meus mim minha minhas muito na nada nao "
    "naquela naquele nas nela nelas nele neles nem nenhum nenhuma nenhuns nessa nessas nesse "
    "nesses nesta nestas neste nestes ninguem nisso nisto no nos nossa nossas nosso nossos num "
    "numa nunca o obrigada obrigado obrigados oi ok ola onde ora os ou outrem para pela pelas "
    "pelo pelos pera perante pff pfv pode podeis podem podemos podera poderao poderia poderiam "
    "poderiamos podes pois por porem portanto possa possam possamos posso pouca pouco pra "
    "prezado prezados pro propria proprio pude pudesse quais quaisquer qual qualquer quando "
    "quanta quantas quanto quantos quase que quem quer querem queremos queria queriam quero quis "
    "quiser quisesse sao saudacoes se seja sejam sejamos sejas sem sempre senao sendo senhor "
    "senhora senhores ser sera serao serei serem seria seriam seriamos sermos seu seus sff si "
    "sido sim so sob sobre somos sou sua suas tais tal talvez tambem tampouco tanta tantas tanto "
    "tantos tao te tem temos tendo tenha tenham tenhas tenho tens ter tera terao terei teria "
    "teriam teu teus teve ti tido tinha tinham tinhas tive tiver tivesse toda todavia tras tu "
    "tua tuas um uma umas uns vai vindo voce vocemece voces vos vossa vossas vosso vossos";
static const char light_pt[] =
    "aceita aceitam aceitar acha achar acho aconselha aconselham aconselhar acontece acontecer "
    "adequada adequado agradavel ainda ajuda ajudam ajudar alta alto ama amiga amigo amigos ano "
    "anos antes antiga antigo aparece artigo assim atender avo avos baixa baixo bastante bonito "
    "busca buscar cabe cada cara causa cedo cem cerca certa certeza certo chama chamar chega "
    "chegar cinco claro coisa coisas comeca comecar completa completo compra comprado comprar "
    "comprei comum conhecem conhecer conseguir conselho contem conter corre correto criar curta "
    "curto custa custam custar custo dado dados dao dar data deixa deixam deixar demora demorar "
    "depende dependente deseja desejar dez dia dias dica diferenca diferente diferentes dificil "
    "direito direto dispoem disponiveis disponivel diz dizem dizer dobro dois duas dura durar "
    "duvida duvidas efeito encontra encontram encontrar encontro entende entender entra entrar "
    "escolhe escolher escreve escrever especiais especial espera esperar esposa esposo estado "
    "exata exatamente exato exemplo existe existem existir explicar extra facil facilmente faco "
    "fala falar falta familia faz fazem fazemos fazer feita feito fica ficam ficar fico filha "
    "filho filhos fim final fiquei forma formas funciona funcionam funcionar gente geral gosta "
    "gostar gostaria gosto grande grandes guardar hoje homem hora horas ideal ideia igual "
    "importa importante inclui incluido incluir indica indicar info informacao informacoes "
    "inteiro interessa interessado irma irmao jeito jovem jovens junta junto juntos lado larga "
    "leva levam levar lista livre loja longa longo lugar mae maes maior mais maneira manha mao "
    "marido maximo media meio melhor melhores menor mes meses mil minimo minuto minutos modo "
    "momento mostrar muita muitas muitos mulher mundo namorada namorado necessaria necessario "
    "necessita necessitar neta neto noite noites nome normal normalmente nova novas nove novo "
    "novos numero obter oferece oferecem oferecer oito ontem opcao opcoes outra outras outro "
    "outros pagina pai pais palavra par parece parecer parte partir passa passado passar pede "
    "pedem pedido pedir pena pensar pequena pequeno pequenos pergunta permite permitem permitido "
    "permitir perto pessoa pessoas pior poder poe possibilidade possiveis possivel poucas poucos "
    "pratico precisa precisam precisamos precisar preciso preco prima primeira primeiro primo "
    "principal problema problemas procura procurar procuro produto produtos proxima proximo "
    "quantidade quatro queira quente querer questao razao real realmente recebe receber recebi "
    "recomenda recomendam recomendar refere responder resposta resto resulta sabe sabem saber "
    "sai sair segue seguir segunda segundo seguro seis semana semanas sente serve servem servir "
    "sete significa simples site sitio sobrinha sobrinho somente suficiente tarda tarde tardes "
    "tempo tempos tentar terceiro tia tio tipo tirar todas todo todos tomam tomar tornar total "
    "totalmente trazer tres tudo ultima ultimo ultimos unica unico usa usam usar uso utiliza "
    "utilizar vale valem valer vamos vao varia varias vario varios vejo velha velho vem vemos "
    "vende vendem vender vendido venho ver verdade vez vezes vir viver volta voltar vou";

/* Japanese: as the tokenizer splits it. Hiragana has little meaning. */
static const char light_ja[] =
    "何時 何日 何円 何色 何個 何年 何本 何枚 何回 何人 何度 何分 何種 何曜 何 今日 明日 昨日 今 "
    "必要 可能 場合 方法 教 知 私 僕 友人 友達 家族 父 母 時 人 方 自分 最近 普通 種類 質問 是非 "
    "以上 以内 以外 程度 大体 全部 一番 一緒 本当 欲 思 言 見 使 出 行 来 用";

static const char stop_it[] =
    "a ad adesso agli ai al alcuni all alla alle allo anche ancora avere avete avevo buonasera "
    "buongiorno c che chi ci ciao cio coi col come con cortesia cosa cui d da dagli dai dal "
    "dall dalla dalle dallo degli dei del dell della delle dello di dopo dove dovrebbe dovrei e "
    "ecco ed era erano essere fa favore fra gia gli grazie ha hai hanno ho i il in io l la le "
    "lei li lo loro lui ma me mi mia mie miei mio molto ne negli nei nel nell nella nelle nello "
    "noi non nostra nostre nostri nostro o ogni per perche pero piu poi possiamo posso possono "
    "potete potrei prego puo quale quali quando quanta quante quanti quanto quel quella quelle "
    "quelli quello questa queste questi questo qui s salve se sei senza si sia siamo siete solo "
    "sono sta stato su sua sue sugli sui sul sull sulla sulle suo suoi ti tra tu tua tuo un una "
    "uno v va vi voi volete vorrei vorremmo vostra vostre vostri vostro";
static const char stop_nl[] =
    "aan al alle als alsjeblieft alstublieft bedankt ben bent bij daar daarom dag dan dank dat "
    "de den der deze die dit door dus een elk en er geen goedemiddag goedemorgen goedenavond "
    "graag had hadden hallo heb hebben hebt heeft hem het hier hij hoe hoeveel hoi hun ik in is "
    "ja je jij jou jouw jullie kan kon kunnen kunt maar mag me mee meer met mij mijn moet "
    "moeten mogen naar nee niet niets nog nu of om omdat onder ons onze ook op over te tegen "
    "toch toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we wel welk "
    "welke werd wie wij wil willen wilt word worden wordt zal ze zelf zich zij zijn zo zonder "
    "zou zouden zult";
static const char stop_sv[] =
    "alla allt ar at att av bara bli blir da dar de dem den denna deras dess det detta dig din "
    "dina ditt du eftersom ej eller en er era ert ett far fatt fick for fran genom ha hade "
    "halla han har hej hejsan hon hur i icke in ingen inget inte ja jag kan kunde kunna man "
    "maste med men mig min mina mitt mot mycket nagon nagot nagra nar nej ni nu och om oss over "
    "pa sa samma sedan ser sig sin sina sitt ska skall skulle snalla som tack till under ut "
    "utan vad var vara varfor varit vart vem vet vi vid vilka vilken vilket vill";
static const char stop_da[] =
    "af alle alt at bare blev blive bliver da de dem den denne der deres det dette dig din dine "
    "disse dit dog du efter eller en end er et fa far for fra ham han har havde have hej hende "
    "her hos hun hvad hvilke hvilken hvilket hvis hvor hvordan hvorfor hvornar i ikke ind ingen "
    "intet ja jeg jeres kan kunne ma man med meget men mig min mine mit nar nej nogen noget "
    "nogle nu og ogsa om op os over pa sa selv sig sin sine sit skal skulle som tak til ud uden "
    "under være været var ved vi vil ville vor vores";
static const char stop_no[] =
    "alle alt at av bare ble bli blir da de deg dei dem den denne der dere deres det dette din "
    "dine disse ditt du eller en enn er et ett etter far for fra ha hadde han har hei hennes "
    "her hos hun hva hvem hver hvilke hvilken hvilket hvis hvor hvordan hvorfor i ikke ingen "
    "inn ja jeg kan kom kunne ma man med meg meget men min mine mitt mot nar nei noe noen og "
    "ogsa om opp oss over pa sa seg selv sin sine sitt skal skulle som takk til under ut uten "
    "være vært var vare ved vi vil ville";
static const char stop_fi[] =
    "ei eika eivat en enka enta etta ette han hanen hanta he hei heidan heita hyvaa ihan itse "
    "ja jo joka jos josta jotka jotta kaikki kanssa kerran kiitos koska kuin kuinka kuka kun me "
    "meidan meilla meita mihin mika miksi millainen milloin mina minua minulla minun minut "
    "missa mista mita miten moi mutta myos ne niiden niin niita noin nyt ole olemme olen olet "
    "olette oli olisi olisin olivat olla on onko ovat paivaa paljonko sa saako se sen siina "
    "siita sille sina sinun sita tai tama taman tata te teidan teilla teita terve vaan vai vain "
    "voi voiko voimme voin voinko voisi voisin voitte voivat";
static const char stop_ru[] =
    "а без более бы был была были было быть в вам вами вас ваш ваша ваше ваши во вот все всех "
    "всё вы где да день для до добрый его ее если есть еще ещё её же за здесь здравствуйте и из "
    "или им их к как какая какие какой какую ко когда кто ли либо меня мне мной мое может можете "
    "можно мои мой моя моё мы на над надо нам нас наш наша наше наши не него нее нет ни них но "
    "ну о об он она они оно от очень по под пожалуйста после почему при привет про с сам свой "
    "свою себе себя сколько со спасибо так такой там тебя тем то тоже только тот ту ты у уже "
    "хотел хотела хочу чем через что чтобы эта эти это этого этой этом этот я";

static const char none[] = "";

static const struct language languages[] = {
    {"ar", "arabic", none, none},
    {"ca", "catalan", none, none},
    {"da", "danish", stop_da, none},
    {"de", "german", stop_de, light_de},
    {"el", "greek", none, none},
    {"en", "english", stop_en, light_en},
    {"es", "spanish", stop_es, light_es},
    {"eu", "basque", none, none},
    {"fi", "finnish", stop_fi, none},
    {"fr", "french", stop_fr, light_fr},
    {"ga", "irish", none, none},
    {"hi", "hindi", none, none},
    {"hu", "hungarian", none, none},
    {"hy", "armenian", none, none},
    {"id", "indonesian", none, none},
    {"it", "italian", stop_it, none},
    {"ja", NULL, none, light_ja},
    {"ko", NULL, none, none},
    {"lt", "lithuanian", none, none},
    {"nb", "norwegian", stop_no, none},
    {"ne", "nepali", none, none},
    {"nl", "dutch", stop_nl, none},
    {"no", "norwegian", stop_no, none},
    {"pt", "portuguese", stop_pt, light_pt},
    {"ro", "romanian", none, none},
    {"ru", "russian", stop_ru, none},
    {"sr", "serbian", none, none},
    {"sv", "swedish", stop_sv, none},
    {"ta", "tamil", none, none},
    {"th", NULL, none, none},
    {"tr", "turkish", none, none},
    {"yi", "yiddish", none, none},
    {"zh", NULL, none, none},
};
static const struct language unknown = {"", NULL, none, none};

const struct language *language_find(struct str tag)
{
    size_t n = 0;
    while (n < tag.n && tag.p[n] != '-' && tag.p[n] != '_')
        n++;
    for (size_t i = 0; i < sizeof(languages) / sizeof(*languages); i++)
        if (n == 2 && strncasecmp(tag.p, languages[i].tag, 2) == 0)
            return &languages[i];
    return &unknown;
}
