#include "store/answers/language_internal.h"

/* Stop words of the languages that have no list of light words. */

const char stop_it[] =
    "a ad adesso agli ai al alcuni all alla alle allo anche ancora avere avete avevo buonasera "
    "buongiorno c che chi ci ciao cio coi col come con cortesia cosa cui d da dagli dai dal dall "
    "dalla dalle dallo degli dei del dell della delle dello di dopo dove dovrebbe dovrei e ecco ed "
    "era erano essere fa favore fra gia gli grazie ha hai hanno ho i il in io l la le lei li lo "
    "loro lui ma me mi mia mie miei mio molto ne negli nei nel nell nella nelle nello noi non "
    "nostra nostre nostri nostro o ogni per perche pero piu poi possiamo posso possono potete "
    "potrei prego puo quale quali quando quanta quante quanti quanto quel quella quelle quelli "
    "quello questa queste questi questo qui s salve se sei senza si sia siamo siete solo sono sta "
    "stato su sua sue sugli sui sul sull sulla sulle suo suoi ti tra tu tua tuo un una uno v va vi "
    "voi volete vorrei vorremmo vostra vostre vostri vostro";
const char stop_nl[] =
    "aan al alle als alsjeblieft alstublieft bedankt ben bent bij daar daarom dag dan dank dat de "
    "den der deze die dit door dus een elk en er geen goedemiddag goedemorgen goedenavond graag "
    "had hadden hallo heb hebben hebt heeft hem het hier hij hoe hoeveel hoi hun ik in is ja je "
    "jij jou jouw jullie kan kon kunnen kunt maar mag me mee meer met mij mijn moet moeten mogen "
    "naar nee niet niets nog nu of om omdat onder ons onze ook op over te tegen toch toen tot u "
    "uit uw van veel voor waar waarom wanneer want waren was wat we wel welk welke werd wie wij "
    "wil willen wilt word worden wordt zal ze zelf zich zij zijn zo zonder zou zouden zult";
const char stop_sv[] =
    "alla allt ar at att av bara bli blir da dar de dem den denna deras dess det detta dig din "
    "dina ditt du eftersom ej eller en er era ert ett far fatt fick for fran genom ha hade halla "
    "han har hej hejsan hon hur i icke in ingen inget inte ja jag kan kunde kunna man maste med "
    "men mig min mina mitt mot mycket nagon nagot nagra nar nej ni nu och om oss over pa sa samma "
    "sedan ser sig sin sina sitt ska skall skulle snalla som tack till under ut utan vad var vara "
    "varfor varit vart vem vet vi vid vilka vilken vilket vill";
const char stop_da[] =
    "af alle alt at bare blev blive bliver da de dem den denne der deres det dette dig din dine "
    "disse dit dog du efter eller en end er et fa far for fra ham han har havde have hej hende her "
    "hos hun hvad hvilke hvilken hvilket hvis hvor hvordan hvorfor hvornar i ikke ind ingen intet "
    "ja jeg jeres kan kunne ma man med meget men mig min mine mit nar nej nogen noget nogle nu og "
    "ogsa om op os over pa sa selv sig sin sine sit skal skulle som tak til ud uden under være "
    "været var ved vi vil ville vor vores";
const char stop_no[] =
    "alle alt at av bare ble bli blir da de deg dei dem den denne der dere deres det dette din "
    "dine disse ditt du eller en enn er et ett etter far for fra ha hadde han har hei hennes her "
    "hos hun hva hvem hver hvilke hvilken hvilket hvis hvor hvordan hvorfor i ikke ingen inn ja "
    "jeg kan kom kunne ma man med meg meget men min mine mitt mot nar nei noe noen og ogsa om opp "
    "oss over pa sa seg selv sin sine sitt skal skulle som takk til under ut uten være vært var "
    "vare ved vi vil ville";
const char stop_fi[] =
    "ei eika eivat en enka enta etta ette han hanen hanta he hei heidan heita hyvaa ihan itse ja "
    "jo joka jos josta jotka jotta kaikki kanssa kerran kiitos koska kuin kuinka kuka kun me "
    "meidan meilla meita mihin mika miksi millainen milloin mina minua minulla minun minut missa "
    "mista mita miten moi mutta myos ne niiden niin niita noin nyt ole olemme olen olet olette oli "
    "olisi olisin olivat olla on onko ovat paivaa paljonko sa saako se sen siina siita sille sina "
    "sinun sita tai tama taman tata te teidan teilla teita terve vaan vai vain voi voiko voimme "
    "voin voinko voisi voisin voitte voivat";
const char stop_ru[] = "а без более бы был была были было быть в вам вами "
                       "вас ваш ваша ваше ваши во вот все всех всё вы где да "
                       "день для до добрый его ее если есть еще ещё её же за "
                       "здесь здравствуйте и из или им их к как какая какие "
                       "какой какую ко когда кто ли либо меня мне мной мое "
                       "может можете можно мои мой моя моё мы на над надо "
                       "нам нас наш наша наше наши не него нее нет ни них но "
                       "ну о об он она они оно от очень по под пожалуйста "
                       "после почему при привет про с сам свой свою себе "
                       "себя сколько со спасибо так такой там тебя тем то "
                       "тоже только тот ту ты у уже хотел хотела хочу чем "
                       "через что чтобы эта эти это этого этой этом этот я";
