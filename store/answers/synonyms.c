#include "store/answers/file_internal.h"
#include "store/answers/question_internal.h"
#include "store/answers/tokenizer_internal.h"
#include "store/bytes.h"

#include <stdlib.h>

/*
 * Synonyms of shops' words, by language: a question with one of them finds the others. Lists are
 * lower case without accents: words of a group separated by spaces, groups by ";".
 */

static const char en[] =
    "free gratis complimentary;shipping delivery postage dispatch ship deliver send sent "
    "freight courier;refund reimburse refunded;return returns sendback rma;guarantee warranty;"
    "phone telephone call;pay payment paying;abroad overseas international foreign worldwide "
    "countries;broken defective damaged faulty cracked broke;job vacancy hiring hire career "
    "careers apprenticeship internship;collect pickup collection;repair fix mend servicing "
    "restore;bike bicycle cycle;invoice bill receipt;kids children child kid;wash washable "
    "laundry;wholesale reseller retailer;cancel cancellation;email mail;reservation reserve "
    "appointment;opening open close closed closing;voucher giftcard coupon;price cost fee;gift "
    "present;size sizing measurement dimensions;stock available availability;discount reduction "
    "rebate student;exchange swap;assemble assembly assembled;weigh weight heavy;clean cleaning;"
    "course class workshop lesson;parcel package shipment;address location;car parking park;"
    "tracking track;register account login;complaint complain;custom bespoke personalised "
    "engraving;privacy data;instructions manual;secondhand preowned;rent rental hire borrow;"
    "damage scratch;cheap inexpensive affordable";
static const char de[] =
    "kostenlos gratis umsonst kostenfrei;versand lieferung liefern versenden schicken "
    "verschicken lieferkosten versandkosten zustellung porto;ruckgabe retoure rucksendung "
    "zuruckgeben zurucksenden zuruckschicken widerruf;erstattung ruckerstattung ruckzahlung "
    "erstatten geld;garantie gewahrleistung;zahlung bezahlen zahlen bezahlung zahlungsart;"
    "kaputt defekt beschadigt zerbrochen gebrochen;stornieren abbestellen stornierung kundigen;"
    "abholen abholung selbstabholung;reparieren reparatur repariert werkstatt;offnungszeiten "
    "geoffnet offnet offen offnen geschlossen schliessen;preis kosten gebuhr kostet teuer;"
    "fahrrad rad;kinder kind;umtausch umtauschen tauschen;anrufen telefon telefonnummer "
    "telefonisch;rechnung quittung beleg;rabatt nachlass ermassigung;gutschein geschenkkarte;"
    "geschenk schenken verschenken;grosse masse abmessungen;gewicht wiegen wiegt schwer;lagernd "
    "vorratig lieferbar verfugbar;job bewerben ausbildung praktikum jobs;kurs workshop "
    "unterricht seminar;reservieren reservierung termin buchen buchung;adresse anschrift "
    "standort;parken parkplatz parkplatze;paket sendung packchen;sendungsverfolgung "
    "sendungsnummer verfolgen tracking;reinigen reinigung putzen;gebraucht secondhand;mieten "
    "leihen ausleihen verleih miete;ausland international;anleitung gebrauchsanweisung;gravur "
    "gravieren;konto kundenkonto anmelden passwort;kontakt erreichen kontaktieren;reklamation "
    "reklamieren mangel;einlosen gultig;montage montieren aufbauen aufbau;aufbewahren lagern";
static const char fr[] =
    "gratuit gratuitement offert offerte;livraison livrer expedition expedier envoi envoyer "
    "livrez expediez acheminer;retour retourner renvoyer retractation;remboursement rembourser "
    "rembourse;paiement payer regler reglement;casse abime endommage defectueux cassee brise;"
    "annuler annulation;retrait retirer recuperer;reparer reparation;horaires ouvert ouverture "
    "ouvrir ferme fermeture fermer;prix cout tarif frais coute couter;velo bicyclette;telephone "
    "appeler telephoner;enfants enfant;echange echanger;garantie garanti;facture recu;reduction "
    "remise rabais promotion;cadeau offrir;taille dimensions mesure;poids peser pese lourd;"
    "stock disponible disponibilite;emploi recrutement embauche stage recruter;atelier cours "
    "stage formation;reserver reservation rendez;adresse situe;parking garer stationner "
    "stationnement;colis paquet;suivi suivre;nettoyer nettoyage laver entretien;louer location;"
    "etranger international pays;graver gravure personnaliser;compte connexion;contact "
    "contacter joindre;valable validite valide expire;conserver conservation;monter montage;"
    "desinscrire desabonner";
static const char es[] =
    "gratis gratuito gratuita;envio enviar entrega entregar mandar gastos;devolucion devolver;"
    "reembolso reembolsar dinero;pago pagar abonar;factura recibo ticket;roto danado defectuoso "
    "averiado rota;cancelar anular cancelacion;recoger recogida;reparar reparacion arreglar "
    "taller;horario abrir abierto abris abrimos cerrar cerrado cerrais apertura;precio coste "
    "costo tarifa cuesta costar;bici bicicleta;telefono llamar;ninos nino;cambio cambiar;"
    "garantia garantizado;descuento rebaja oferta promocion;regalo regalar;talla tamano medida "
    "medidas;peso pesar pesa pesado;stock disponible existencias disponibilidad;empleo vacante "
    "contratar practicas;curso taller clase;reservar reserva cita;direccion ubicacion;aparcar "
    "aparcamiento parking;paquete bulto;seguimiento rastrear;limpiar limpieza lavar;ocasion "
    "segunda;alquilar alquiler;extranjero internacional pais;instrucciones manual;grabar "
    "grabado personalizar;cuenta registro;contacto contactar;caduca caducidad validez valido;"
    "montar montaje;queja reclamacion reclamar;conservar guardar";
static const char pt[] =
    "gratis gratuito gratuita;entrega entregar envio enviar mandar portes;devolucao devolver;"
    "reembolso reembolsar dinheiro;pagamento pagar;fatura recibo;partido danificado avariado "
    "defeituoso partiu partida;cancelar anular cancelamento;levantar recolher levantamento;"
    "reparar reparacao arranjar consertar conserto;horario aberto abrir abertos fechar fechado "
    "fecham abrem;preco custo tarifa custa custar;telefone ligar telefonar;criancas crianca "
    "menino menina;troca trocar;garantia garantido;desconto promocao;presente prenda oferecer;"
    "tamanho medida medidas;peso pesar pesa pesado;stock estoque disponivel disponibilidade;"
    "emprego vaga estagio contratar;curso aula workshop aulas;reservar reserva marcacao;morada "
    "endereco;estacionar estacionamento parque;encomenda pacote;seguimento rastrear;limpar "
    "limpeza lavar;alugar aluguer;estrangeiro internacional pais;instrucoes manual;gravar "
    "gravacao personalizar;conta registo;contacto contactar;validade valido expira;montar "
    "montagem;reclamacao reclamar queixa;guardar conservar";
static const char ja[] =
    "送料 配送 発送 配達 郵送 宅配 届 送;返品 返送 返却;返金 払戻;交換 取替;支払 決済 払;修理 修繕 "
    "直;営業 開店 閉店 開;定休 休業 休;連絡 電話;領収 明細;"
    "値段 価格 料金 費用 円;取消 解約;包装 包;在庫 入荷;予約;求人 採用 募集;割引 値引;期間 "
    "期限;住所 宛先;重 量;洗 汚";

static const struct {
    const char *tag, *groups;
} lists[] = {{"en", en}, {"de", de}, {"fr", fr}, {"es", es}, {"pt", pt}, {"ja", ja}};

struct reading {
    struct file_table *t;
    int group;
};

static int take_form(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct reading *r = arg;
    (void)from, (void)to;
    if ((flags & FTS5_TOKEN_COLOCATED) != 0 || n > TOKENIZER_WORD_MAX)
        return SQLITE_OK;
    struct synonym s = {.group = r->group, .n = (uint8_t)n};
    memcpy(s.form, token, (size_t)n);
    buf_add(&r->t->synonyms, &s, sizeof(s));
    return buf_ok(&r->t->synonyms) ? SQLITE_OK : SQLITE_NOMEM;
}

static int read_groups(struct file_table *t, const char *groups)
{
    struct reading r = {.t = t};
    int rc = SQLITE_OK;
    while (*groups != '\0' && rc == SQLITE_OK) {
        struct str word = {groups, strcspn(groups, " ;")};
        rc = tokenizer_run(t->tokenizer, FTS5_TOKENIZE_QUERY, word, take_form, &r);
        groups += word.n;
        r.group += *groups == ';';
        groups += *groups != '\0';
    }
    return rc;
}

int synonyms_make(struct file_table *t)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        if (strcmp(lists[i].tag, t->language) == 0 && t->synonyms.n == 0)
            return read_groups(t, lists[i].groups);
    return SQLITE_OK;
}

static bool is_form(const struct synonym *s, const struct question_word *w)
{
    for (unsigned i = 0; i < w->form_count; i++)
        if (str_eq((struct str){w->forms[i].p, w->forms[i].n}, (struct str){s->form, s->n}))
            return true;
    return false;
}

void synonyms_add(const struct file_table *t, struct question_word *w)
{
    const struct synonym *all = (const struct synonym *)(const void *)t->synonyms.p;
    size_t n = t->synonyms.n / sizeof(*all);
    int group = -1;
    for (size_t i = 0; i < n && group < 0; i++)
        group = is_form(&all[i], w) ? all[i].group : -1;
    for (size_t i = 0; i < n && group >= 0; i++) {
        if (all[i].group != group || is_form(&all[i], w) || w->form_count == QUESTION_FORMS)
            continue;
        struct question_form *f = &w->forms[w->form_count++];
        memcpy(f->p, all[i].form, all[i].n);
        f->n = all[i].n;
    }
}
